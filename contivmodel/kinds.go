package contivmodel

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Kinds returns all kinds of objects, in an order in which they can be created: the
// objects of a kind refer only to those of earlier kinds. It is the only list of them.
func Kinds() []AnyKind {
	return []AnyKind{
		GlobalKind(),
		AciGwKind(),
		TenantKind(),
		NetprofileKind(),
		PolicyKind(),
		ExtContractsGroupKind(),
		NetworkKind(),
		EndpointGroupKind(),
		RuleKind(),
		AppProfileKind(),
		ServiceLBKind(),
		BgpKind(),
		VolumeKind(),
		VolumeProfileKind(),
	}
}

// Types returns the type strings of the kinds that objects can be made of, in
// alphabetical order without regard to case.
func Types() []string {
	var types []string
	for _, k := range Kinds() {
		if d := k.Description(); !d.Reserved {
			types = append(types, d.Type)
		}
	}
	slices.SortFunc(types, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return types
}

// AnyKind is a kind of objects whatever its Go types are. Objects are pointers to
// structs, as New makes them.
type AnyKind interface {
	Description() Description
	// New returns an object with the values that clients start from.
	New() any
	// Empty returns an object without any value.
	Empty() any
	// Members returns the fields of an object, in the order of the description.
	Members(obj any) []Member
	// Tenant returns the tenant of an object, "" for kinds outside tenants.
	Tenant(obj any) string
	// Prepare drops what only the server sets, sets the key, and validates the object.
	// The key is returned even if the object is not valid.
	Prepare(obj any) (key string, err error)
	// GoTypes returns the types of objects and of what is reported about them.
	GoTypes() (object, oper reflect.Type)
}

// Description is what is known of all objects of a kind.
type Description struct {
	Type       string   // "network"
	Collection string   // "networks"
	Names      []string // the fields that the key is made of, joined by colons
	Fields     []Field  // in the order in which they are written
	Reserved   bool     // no objects can be created
}

// Field returns the description of a field.
func (d Description) Field(name string) (Field, bool) {
	i := slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return d.Fields[i], true
}

// Description implements AnyKind.
func (k Kind[T, O]) Description() Description {
	d := Description{Type: k.Type, Collection: k.Collection, Names: k.names, Reserved: k.reserved}
	for i := range k.members {
		d.Fields = append(d.Fields, k.field(&k.members[i]))
	}
	return d
}

// field completes the description of a field by what holds for the kind.
func (k Kind[T, O]) field(m *member[T]) Field {
	f := m.describe()
	f.Naming = slices.Contains(k.names, f.Name)
	f.Immutable = f.Immutable || f.Naming || k.immutable
	return f
}

// New implements AnyKind.
func (k Kind[T, O]) New() any { return k.Make() }

// Make returns an object with the values that clients start from.
func (k Kind[T, O]) Make() *T {
	obj := new(T)
	for i := range k.members {
		if m := &k.members[i]; m.Initial != "" {
			*m.text(obj) = m.Initial
		}
	}
	return obj
}

// Empty implements AnyKind.
func (k Kind[T, O]) Empty() any { return new(T) }

// Members implements AnyKind.
func (k Kind[T, O]) Members(obj any) []Member {
	all := make([]Member, len(k.members))
	for i := range k.members {
		all[i] = k.members[i].of(obj.(*T), k.field(&k.members[i]))
	}
	return all
}

// Tenant implements AnyKind.
func (k Kind[T, O]) Tenant(obj any) string { return k.text(obj.(*T), tenantName) }

// Prepare implements AnyKind.
func (k Kind[T, O]) Prepare(obj any) (string, error) {
	v := obj.(*T)
	k.Strip(v)
	return k.Key(v), k.Validate(v)
}

// GoTypes implements AnyKind.
func (k Kind[T, O]) GoTypes() (object, oper reflect.Type) {
	return reflect.TypeFor[T](), reflect.TypeFor[O]()
}
