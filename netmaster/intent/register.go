package intent

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// lifecycle defines how objects of a kind are created, changed and deleted. create, update
// and remove run in the writer: they check the request against x and then plan all of its
// changes, including the object itself. An error leaves nothing behind. Without them an
// object is stored and deleted as it is.
type lifecycle[T, O any] struct {
	// alone keeps changes of this kind out of shared transactions: their checks see
	// committed data only.
	alone  bool
	create func(x *tx, obj *T) error
	update func(x *tx, old, obj *T) error
	remove func(x *tx, obj *T) error
	// admin says which objects only an admin may create, change or delete, besides what
	// netmaster/authz says of the kind; nil: none. What it returns names the object.
	admin func(obj *T) (what string, only bool)
	// view changes the copy of an object that is shown: it adds the links that other objects
	// give it; nil if there are none. oper makes the operational part
	// from the model. Both run with the model locked for reading.
	view func(obj *T)
	oper func(obj *T, hosts vteps) (O, error)
	// ask makes the operational part, instead of oper, from replies of agents.
	ask func(ctx context.Context, e *Engine, obj *T) (O, error)
}

// objects is the table of the objects of one kind, by their key. Objects have no links there:
// these follow from the names in them, and take more memory than the rest.
type objects[T, O any] struct {
	*table[string, T]
	kind contivmodel.Kind[T, O]
	lifecycle[T, O]
}

// registered is a kind of objects, independent of its Go type.
type registered interface {
	// serve returns the Collection of the kind.
	serve(e *Engine) Collection
}

// register adds a kind to the model: its table, how objects are loaded, and the Collection
// for REST.
func register[T, O any](m *model, kind contivmodel.Kind[T, O], l lifecycle[T, O]) *objects[T, O] {
	prefix := state.ModelRoot + kind.Type + "/"
	o := &objects[T, O]{table: newTable[string, T](func(key string) string { return prefix + key }), kind: kind, lifecycle: l}
	if o.create == nil {
		o.create = func(x *tx, obj *T) error {
			o.put(x, kind.Key(obj), obj)
			return nil
		}
	}
	if o.update == nil {
		o.update = func(x *tx, _, obj *T) error { return o.create(x, obj) }
	}
	if o.remove == nil {
		o.remove = func(*tx, *T) error { return nil }
	}
	o.encode = o.linked
	o.compact = func(_ string, obj *T) { kind.Texts(obj, func(s *string) { m.texts.share(s) }) }
	m.all = append(m.all, o.table)
	m.kinds = append(m.kinds, o)
	m.sources = append(m.sources, source{prefix, func(_ *loader, key string, kv objdb.KV) error { return o.decode(key, kv) }})
	return o
}

func (o *objects[T, O]) serve(e *Engine) Collection { return o.collection(e) }

func (o *objects[T, O]) collection(e *Engine) *collection[T, O] {
	return &collection[T, O]{e: e, rows: o}
}

// decode decodes an object from the store.
func (o *objects[T, O]) decode(key string, kv objdb.KV) error {
	obj := new(T)
	if err := json.Unmarshal(kv.Value, obj); err != nil {
		return err
	}
	if o.kind.Key(obj) != key || o.kind.Ident(obj) != key {
		return errs.New(errs.Invalid, "object under key %s has key %s", key, o.kind.Ident(obj))
	}
	o.kind.Strip(obj)
	o.load(o.kind.Key(obj), obj, kv.ModRevision)
	return nil
}

// linked is an object with its links as the store has it.
func (o *objects[T, O]) linked(obj *T) ([]byte, error) { return json.Marshal(o.link(obj)) }

// link returns an object with the links to what it names.
func (o *objects[T, O]) link(obj *T) *T {
	v := *obj
	o.kind.Link(&v)
	return &v
}

// committed is the table without planned changes.
func (o *objects[T, O]) committed() *objects[T, O] {
	return &objects[T, O]{table: o.table.committed(), kind: o.kind, lifecycle: o.lifecycle}
}

// records adds a table of records, by the rest of their store key, to the model.
func records[V any](m *model, prefix string) *table[string, V] {
	t := newTable[string, V](func(id string) string { return prefix + id })
	addTable(m, prefix, t, func(_ *loader, id string, kv objdb.KV) error {
		rec := new(V)
		if err := json.Unmarshal(kv.Value, rec); err != nil {
			return err
		}
		t.load(strings.Clone(id), rec, kv.ModRevision) // not the whole key
		return nil
	})
	return t
}

// addTable adds a table to the model, and how its rows are loaded.
func addTable[K comparable, V any](m *model, prefix string, t *table[K, V], take func(*loader, string, objdb.KV) error) {
	m.all = append(m.all, t)
	m.sources = append(m.sources, source{prefix, take})
}
