package intent

import (
	"context"
	"maps"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/reconcile"
)

// Collection serves the objects of one kind, whatever the kind. Errors are ready to
// be shown to users; see utils/errs for their kinds.
type Collection interface {
	// Name is the path segment under /api/v1/.
	Name() string
	// List returns a slice of the visible objects, sorted by key.
	List(Sees) any
	// Get returns one object.
	Get(key string) (any, error)
	// Put creates an object from a request body, or updates the one with that key, and
	// returns it as stored.
	Put(ctx context.Context, key string, body []byte) (any, error)
	// Delete removes an object.
	Delete(ctx context.Context, key string) error
	// Inspect returns an object with its operational state.
	Inspect(ctx context.Context, key string) (any, error)
}

// collection serves the objects of a kind that is registered.
type collection[T, O any] struct {
	e    *Engine
	rows *objects[T, O]
}

func (c *collection[T, O]) Name() string { return c.rows.kind.Collection }

func (c *collection[T, O]) List(sees Sees) any {
	m := c.e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	objs := make([]*T, 0, len(c.rows.base))
	for _, key := range slices.Sorted(maps.Keys(c.rows.base)) {
		if obj := c.show(key); sees == nil || sees(c.rows.kind.Tenant(obj)) {
			objs = append(objs, obj)
		}
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
	return nil, c.rows.kind.NotFound()
}

// show returns an object with its links, nil if it does not exist.
func (c *collection[T, O]) show(key string) *T {
	r, ok := c.rows.base[key]
	if !ok {
		return nil
	}
	obj := c.rows.link(r.v)
	if c.rows.view != nil {
		c.rows.view(obj)
	}
	return obj
}

func (c *collection[T, O]) Put(ctx context.Context, key string, body []byte) (any, error) {
	obj, err := c.rows.kind.Decode(key, body)
	if err != nil {
		return nil, err
	}
	change := reconcile.Change{Type: c.rows.kind.Type, Key: key, Op: reconcile.Update}
	if !c.exists(key) {
		change.Op = reconcile.Create
	}
	var stored *T
	err = reconcile.Do(ctx, c.e.loops, change, func(ctx context.Context) (err error) {
		stored, err = c.store(ctx, obj)
		return err
	}, func(ctx context.Context) error { return c.remove(ctx, key) })
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func (c *collection[T, O]) exists(key string) bool {
	c.e.model.mu.RLock()
	defer c.e.model.mu.RUnlock()
	_, ok := c.rows.base[key]
	return ok
}

// store creates or updates an object that has been checked.
func (c *collection[T, O]) store(ctx context.Context, obj *T) (*T, error) {
	key := c.rows.kind.Key(obj)
	return submit[*T](ctx, c.e.writer, c.rows.alone, func(x *tx) (reply, error) {
		return func(int64) any { return c.show(key) }, c.rows.planStore(ctx, x, obj)
	})
}

// planStore plans creating or updating an object.
func (o *objects[T, O]) planStore(ctx context.Context, x *tx, obj *T) error {
	if err := o.permit(ctx, "change", obj); err != nil {
		return err
	}
	old, ok := o.get(o.kind.Key(obj))
	if !ok {
		return o.create(x, obj)
	}
	if err := o.permit(ctx, "change", old); err != nil {
		return err
	}
	return o.update(x, old, obj)
}

// planRemove plans removing an object.
func (o *objects[T, O]) planRemove(ctx context.Context, x *tx, key string) error {
	obj, ok := o.get(key)
	if !ok {
		return o.kind.NotFound()
	}
	if err := o.permit(ctx, "delete", obj); err != nil {
		return err
	}
	o.del(x, key)
	return o.remove(x, obj)
}

// permit refuses what only an admin may do with an object.
func (o *objects[T, O]) permit(ctx context.Context, verb string, obj *T) error {
	if o.admin == nil {
		return nil
	}
	what, only := o.admin(obj)
	if !only {
		return nil
	}
	return checkAdmin(ctx, verb, what)
}

func (c *collection[T, O]) Delete(ctx context.Context, key string) error {
	change := reconcile.Change{Type: c.rows.kind.Type, Key: key, Op: reconcile.Delete}
	return reconcile.Do(ctx, c.e.loops, change, func(ctx context.Context) error { return c.remove(ctx, key) }, nil)
}

func (c *collection[T, O]) remove(ctx context.Context, key string) error {
	_, err := submit[string](ctx, c.e.writer, true, func(x *tx) (reply, error) {
		return func(int64) any { return key }, c.rows.planRemove(ctx, x, key)
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
	case c.rows.ask != nil:
		v.Oper, err = c.rows.ask(ctx, c.e, v.Config)
	case c.rows.oper != nil:
		v, err = c.look(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// look returns an object and its operational part at one point in time.
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
		return nil, c.rows.kind.NotFound()
	}
	oper, err := c.rows.oper(obj, hosts)
	return &contivmodel.Inspection[*T, O]{Config: obj, Oper: oper}, err
}
