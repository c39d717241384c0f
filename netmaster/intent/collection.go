package intent

import (
	"context"
	"maps"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
)

// Collection serves the objects of one kind, whatever the kind. Errors are ready to
// be shown to users; see utils/errs for their kinds.
type Collection interface {
	// Name is the path segment under /api/v1/.
	Name() string
	// List returns a slice of objects, sorted by key.
	List() any
	// Get returns one object.
	Get(key string) (any, error)
	// Put creates an object from a request body, or updates the one with that key, and
	// returns it as stored.
	Put(ctx context.Context, key string, body []byte) (any, error)
	// Delete removes an object.
	Delete(ctx context.Context, key string) error
	// Inspect returns an object together with what is in use by it.
	Inspect(ctx context.Context, key string) (any, error)
}

// collection makes a Collection of the rules of a kind. create, update and remove run
// in the writer: they check the request against x and then plan every change it
// amounts to, the object itself included. What they return as error leaves nothing
// behind.
type collection[T, O any] struct {
	e    *Engine
	kind contivmodel.Kind[T, O]
	rows *table[string, T]
	// alone keeps changes of this kind out of shared transactions: their rules look at
	// what is committed only.
	alone  bool
	create func(x *tx, obj *T) error
	update func(x *tx, old, obj *T) error
	remove func(x *tx, obj *T) error
	// view adds the links that are derived; nil when there are none. oper makes the
	// operational part from the model. Both run with the model locked for reading.
	view func(obj *T) *T
	oper func(obj *T, hosts vteps) (O, error)
	// ask makes the operational part, instead of oper, from what others answer.
	ask func(ctx context.Context, obj *T) (O, error)
}

func (c *collection[T, O]) Name() string { return c.kind.Collection }

func (c *collection[T, O]) List() any {
	m := c.e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	objs := make([]*T, 0, len(c.rows.base))
	for _, key := range slices.Sorted(maps.Keys(c.rows.base)) {
		objs = append(objs, c.show(key))
	}
	return objs
}

func (c *collection[T, O]) Get(key string) (any, error) {
	m := c.e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	if obj := c.show(key); obj != nil {
		return obj, nil
	}
	return nil, c.kind.NotFound()
}

// show returns an object with its derived links, nil when there is none.
func (c *collection[T, O]) show(key string) *T {
	r, ok := c.rows.base[key]
	if !ok {
		return nil
	}
	if c.view == nil {
		return r.v
	}
	return c.view(r.v)
}

func (c *collection[T, O]) Put(ctx context.Context, key string, body []byte) (any, error) {
	obj, err := c.kind.Decode(key, body)
	if err != nil {
		return nil, err
	}
	return c.put(ctx, obj)
}

// put creates or updates with an object that has been checked.
func (c *collection[T, O]) put(ctx context.Context, obj *T) (*T, error) {
	key := c.kind.Key(obj)
	return submit[*T](ctx, c.e.writer, c.alone, func(x *tx) (reply, error) {
		var err error
		if old, ok := c.rows.get(key); ok {
			err = c.update(x, old, obj)
		} else {
			err = c.create(x, obj)
		}
		return func(int64) any { return c.show(key) }, err
	})
}

func (c *collection[T, O]) Delete(ctx context.Context, key string) error {
	_, err := submit[string](ctx, c.e.writer, true, func(x *tx) (reply, error) {
		obj, ok := c.rows.get(key)
		if !ok {
			return nil, c.kind.NotFound()
		}
		c.rows.del(x, key)
		return func(int64) any { return key }, c.remove(x, obj)
	})
	return err
}

func (c *collection[T, O]) Inspect(ctx context.Context, key string) (any, error) {
	obj, err := c.Get(key)
	if err != nil {
		return nil, err
	}
	v := &contivmodel.Inspection[*T, O]{Config: obj.(*T)}
	switch {
	case c.ask != nil:
		v.Oper, err = c.ask(ctx, v.Config)
	case c.oper != nil:
		v, err = c.look(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// look shows an object and its operational part as of one moment.
func (c *collection[T, O]) look(ctx context.Context, key string) (*contivmodel.Inspection[*T, O], error) {
	hosts, err := c.e.vteps(ctx)
	if err != nil {
		return nil, err
	}
	m := c.e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	obj := c.show(key)
	if obj == nil {
		return nil, c.kind.NotFound()
	}
	oper, err := c.oper(obj, hosts)
	return &contivmodel.Inspection[*T, O]{Config: obj, Oper: oper}, err
}
