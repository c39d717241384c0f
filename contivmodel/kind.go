package contivmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netspec"
)

// Kind describes one kind of object: T is what a user configures, O what the system
// reports about it (NoOper if it reports nothing).
type Kind[T, O any] struct {
	// Type names the kind in links, store keys and error texts ("network").
	Type string
	// Collection is the kind's path segment under /api/v1/ ("networks").
	Collection string

	names     []string    // the fields that the key is made of
	immutable bool        // no field can change after the object has been created
	reserved  bool        // no objects can be created
	members   []member[T] // the fields, in the order in which they are written and checked
	key       func(*T) *string
	unlink    func(*T)       // drops what only the server sets
	check     func(*T) error // what must hold between fields; nil: nothing
}

// NoOper is what kinds have that report nothing.
type NoOper struct{}

// Inspection is the answer to an inspect request.
type Inspection[T, O any] struct {
	Config T `json:"Config"`
	Oper   O `json:"Oper"`
}

// MarshalJSON leaves Oper out for kinds that report nothing.
func (i Inspection[T, O]) MarshalJSON() ([]byte, error) {
	if _, none := any(i.Oper).(NoOper); none {
		return json.Marshal(struct { // says what is wrong already
			Config T `json:"Config"`
		}{i.Config})
	}
	type plain Inspection[T, O]
	return json.Marshal(plain(i)) // says what is wrong already
}

// Key returns the key an object carries.
func (k Kind[T, O]) Key(obj *T) string { return *k.key(obj) }

// Ident returns the key that the naming fields of an object amount to.
func (k Kind[T, O]) Ident(obj *T) string {
	var ident string
	for i, n := range k.names {
		if i > 0 {
			ident += ":"
		}
		ident += k.text(obj, n)
	}
	return ident
}

// text returns the value of a text field; "" if the kind has no such field.
func (k Kind[T, O]) text(obj *T, field string) string {
	for i := range k.members {
		if m := &k.members[i]; m.Name == field {
			return *m.text(obj)
		}
	}
	return ""
}

// Strip sets an object's key to what its naming fields amount to, and drops the links,
// which only the server sets.
func (k Kind[T, O]) Strip(obj *T) {
	k.unlink(obj)
	*k.key(obj) = k.Ident(obj)
}

// Link sets the links that follow from what an object names, and drops all others.
func (k Kind[T, O]) Link(obj *T) {
	k.unlink(obj)
	tenant := k.text(obj, tenantName)
	for i := range k.members {
		if m := &k.members[i]; m.link != nil || m.links != nil {
			m.connect(obj, tenant)
		}
	}
}

// Texts calls f with each field of an object that is one text. f may replace it by an equal one.
func (k Kind[T, O]) Texts(obj *T, f func(*string)) {
	for i := range k.members {
		if m := &k.members[i]; m.text != nil {
			f(m.text(obj))
		}
	}
}

// NotFound is the error for a key that no object of the kind has.
func (k Kind[T, O]) NotFound() error { return errs.New(errs.NotFound, "%s not found", k.Type) }

// Decode reads the first JSON value of a request body into an object with the given
// key, without links, and checks it. Errors are of kind Invalid.
func (k Kind[T, O]) Decode(key string, body []byte) (*T, error) {
	obj := new(T)
	if err := DecodeJSON(body, obj); err != nil {
		return nil, err
	}
	*k.key(obj) = key
	k.unlink(obj)
	if err := k.Validate(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// Validate checks the key and the fields, in their order, and fills in defaults as it
// goes. It returns the first failure, of kind Invalid.
func (k Kind[T, O]) Validate(obj *T) error {
	if *k.key(obj) == "" || *k.key(obj) != k.Ident(obj) {
		return errs.New(errs.Invalid, "Invalid Key")
	}
	for i := range k.members {
		if err := k.members[i].check(obj); err != nil {
			return err
		}
	}
	for i := range k.members {
		if err := k.members[i].normalize(obj); err != nil {
			return err
		}
	}
	if k.check == nil {
		return nil
	}
	return k.check(obj)
}

// DecodeJSON reads the first JSON value of body into v, as the REST surface wants it:
// unknown members are ignored, member names match without regard to case, what comes
// after the value is not looked at. The error is one line that says where the text
// goes wrong or which member has the wrong type; its kind is Invalid.
func DecodeJSON(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	err := dec.Decode(v)
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if !utf8.Valid(body[:dec.InputOffset()]) {
			return errs.New(errs.Invalid, "request body is not valid UTF-8")
		}
		return nil
	case errors.Is(err, io.EOF):
		return errs.New(errs.Invalid, "request body is empty, expected a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errs.New(errs.Invalid, "request body ends in the middle of a JSON value")
	case errors.As(err, &wrong) && wrong.Field == "":
		return errs.New(errs.Invalid, "request body is a JSON %s, expected an object", wrong.Value)
	case errors.As(err, &wrong):
		return errs.New(errs.Invalid, "%s: expected %s, got %s", memberOf(wrong), jsonName(wrong), wrong.Value)
	case errors.As(err, &syntax):
		return errs.New(errs.Invalid, "request body is not JSON: %v at byte %d", syntax, syntax.Offset)
	default:
		return errs.Wrap(errs.Invalid, fmt.Errorf("request body: %w", err))
	}
}

// memberOf is the path of the member as users write it: encoding/json adds the names of
// embedded structs, of which there is one.
func memberOf(e *json.UnmarshalTypeError) string {
	return strings.TrimPrefix(e.Field, reflect.TypeFor[netspec.Settings]().Name()+".")
}

// jsonName says in JSON's own terms what a member should have been.
func jsonName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "string":
		return "a string"
	case "int", "int64", "uint16":
		return "an integer"
	case "slice":
		return "an array"
	case "bool":
		return "true or false"
	default:
		return "an object"
	}
}
