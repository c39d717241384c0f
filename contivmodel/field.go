package contivmodel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Field describes a member of an object that users set. Validation, the OpenAPI
// document, netctl's options and completion, and manifests all follow from it.
type Field struct {
	Name string    // JSON member, "networkName"
	Type FieldType // of its values
	Text string    // what it means, for people

	Required bool     // may not be empty
	Values   []string // the values it can have; nil: any
	MaxBytes int      // longest text; 0: no limit
	Low      int      // smallest number
	High     int      // largest number
	Format   string   // format of JSON Schema (ipv4, ipv6), or ""
	Pattern  string   // regular expression (ECMA-262) that a text matches, or ""
	Syntax   string   // how a text is written, "KEY=VALUE"; shown in errors
	Default  any      // what the server makes of an empty member; nil: it stays empty
	Initial  string   // what clients start a new object with, or ""

	Naming    bool   // part of the key
	Immutable bool   // cannot change after the object has been created
	Keep      bool   // an update that leaves it empty does not change it
	Refers    string // type of the objects it names, "network"; they are in the object's tenant
}

// FieldType is the JSON type of a field.
type FieldType string

// The types of fields.
const (
	TextField   FieldType = "string"
	NumberField FieldType = "integer"
	ListField   FieldType = "array" // of texts
	SwitchField FieldType = "boolean"
)

// namePattern is what IsName accepts, as a regular expression.
const namePattern = `^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`

// member is a field of a Go type: exactly one of text, number, list and on leads to it.
type member[T any] struct {
	Field

	text   func(*T) *string
	number func(*T) *int
	list   func(*T) *[]string
	on     func(*T) *bool

	// valid reports whether a text, or each text of a list, is well-formed. It is not
	// asked about an empty text unless the field is required.
	valid func(string) bool
	// parse checks a text, or each text of a list, with an error of its own, and
	// returns its canonical form. It runs after all other checks of all fields.
	parse func(string) (string, error)

	// link and links lead to where the objects that the field names are linked.
	link  func(*T) *Link
	links func(*T) *LinkSet
}

// name completes the description of a field that must hold a name.
func name[T any](m member[T], most int) member[T] {
	m.Text += ": labels of letters, digits and hyphens, joined by dots"
	m.Required = true
	return optionalName(m, most)
}

// optionalName completes the description of a field that holds a name or nothing.
func optionalName[T any](m member[T], most int) member[T] {
	m.MaxBytes, m.Pattern, m.valid = most, namePattern, IsName
	return m
}

// tenantOf describes the field that says which tenant an object belongs to.
func tenantOf[T any](at func(*T) *string, link func(*T) *Link) member[T] {
	return name(member[T]{
		Field: Field{Name: tenantName, Text: "the tenant it belongs to", Refers: TenantType},
		text:  at, link: link,
	}, 64)
}

const tenantName = "tenantName"

// describe returns the description of a field with its type.
func (m *member[T]) describe() Field {
	f := m.Field
	switch {
	case m.number != nil:
		f.Type = NumberField
	case m.list != nil:
		f.Type = ListField
	case m.on != nil:
		f.Type = SwitchField
	default:
		f.Type = TextField
	}
	return f
}

// texts returns the texts of a field: none for a number or a switch.
func (m *member[T]) texts(obj *T) []string {
	switch {
	case m.text != nil:
		return []string{*m.text(obj)}
	case m.list != nil:
		return *m.list(obj)
	default:
		return nil
	}
}

// check checks the form of a field, after filling in its default.
func (m *member[T]) check(obj *T) error {
	if m.on != nil {
		return nil // true and false are all there is
	}
	if m.number != nil {
		n := m.number(obj)
		if preset, ok := m.Default.(int); ok && *n == 0 {
			*n = preset
		}
		if *n < m.Low || *n > m.High {
			return errs.New(errs.Invalid, "%s Value Out of bound", m.Name)
		}
		return nil
	}
	if preset, ok := m.Default.(string); ok && *m.text(obj) == "" {
		*m.text(obj) = preset
	}
	for _, s := range m.texts(obj) {
		if m.MaxBytes > 0 && len(s) > m.MaxBytes {
			return errs.New(errs.Invalid, "%s string too long", m.Name)
		}
		if !m.wellFormed(s) {
			return errs.New(errs.Invalid, "%s string invalid format", m.Name)
		}
	}
	return nil
}

func (m *member[T]) wellFormed(s string) bool {
	switch {
	case m.parse != nil: // has its own errors
		return true
	case s == "" && !m.Required && m.list == nil:
		return true
	case m.Values != nil:
		return slices.Contains(m.Values, s)
	default:
		return m.valid == nil || m.valid(s)
	}
}

// normalize does what parse is for.
func (m *member[T]) normalize(obj *T) error {
	if m.parse == nil {
		return nil
	}
	if m.Required && m.list != nil && len(*m.list(obj)) == 0 {
		return errs.New(errs.Invalid, "%s is empty: expected at least one %s", m.Name, m.Syntax)
	}
	texts := m.texts(obj)
	for i, s := range texts {
		canonical, err := m.parse(s)
		if err != nil {
			return err
		}
		if m.list != nil {
			texts[i] = canonical
		} else {
			*m.text(obj) = canonical
		}
	}
	return nil
}

// connect links an object to those that the field names.
func (m *member[T]) connect(obj *T, tenant string) {
	switch {
	case m.links != nil:
		*m.links(obj) = NewLinkSet(m.Refers, Keys(tenant, m.texts(obj)...))
	case m.Refers == TenantType:
		*m.link(obj) = Link{Type: m.Refers, Key: *m.text(obj)}
	case *m.text(obj) != "":
		*m.link(obj) = Link{Type: m.Refers, Key: tenant + ":" + *m.text(obj)}
	}
}

// Keys returns the keys of objects of a tenant by their names, without empty names and
// repetitions.
func Keys(tenant string, names ...string) []string {
	var keys []string
	for _, n := range names {
		if key := tenant + ":" + n; n != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Member is a field of one object, which it reads and changes.
type Member struct {
	Field
	text   *string
	number *int
	list   *[]string
	on     *bool
}

func (m *member[T]) of(obj *T, f Field) Member {
	v := Member{Field: f}
	switch {
	case m.text != nil:
		v.text = m.text(obj)
	case m.number != nil:
		v.number = m.number(obj)
	case m.on != nil:
		v.on = m.on(obj)
	default:
		v.list = m.list(obj)
	}
	return v
}

// Value returns a string, an int, a bool or a []string.
func (m Member) Value() any {
	switch {
	case m.text != nil:
		return *m.text
	case m.number != nil:
		return *m.number
	case m.on != nil:
		return *m.on
	default:
		return *m.list
	}
}

// Set takes a value over: a string, an int, a bool or a []string, as the type of the field
// has it. nil empties it.
func (m Member) Set(v any) {
	switch {
	case m.text != nil:
		*m.text, _ = v.(string)
	case m.number != nil:
		*m.number, _ = v.(int)
	case m.on != nil:
		*m.on, _ = v.(bool)
	default:
		*m.list, _ = v.([]string)
	}
}

// Empty reports whether a member says nothing.
func (m Member) Empty() bool {
	return m.text != nil && *m.text == "" || m.number != nil && *m.number == 0 || m.list != nil && len(*m.list) == 0 || m.on != nil && !*m.on
}

// Equal reports whether the same field of two objects says the same.
func (m Member) Equal(o Member) bool {
	if m.list != nil {
		return slices.Equal(*m.list, *o.list)
	}
	return m.Value() == o.Value()
}

// String is the value for people; nothing is "".
func (m Member) String() string {
	switch {
	case m.number != nil:
		return strconv.Itoa(*m.number)
	case m.on != nil:
		return strconv.FormatBool(*m.on)
	case m.Empty():
		return `""`
	case m.text != nil:
		return *m.text
	default:
		return "[" + strings.Join(*m.list, ", ") + "]"
	}
}
