package intent

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

// reserved serves a kind of which no objects can be created.
type reserved[T, O any] struct{ kind contivmodel.Kind[T, O] }

// registerReserved adds a kind to the model that has no table.
func registerReserved[T, O any](m *model, kind contivmodel.Kind[T, O]) {
	m.kinds = append(m.kinds, reserved[T, O]{kind})
}

func (u reserved[T, O]) serve(*Engine) Collection { return u }

func (u reserved[T, O]) Name() string            { return u.kind.Collection }
func (u reserved[T, O]) List(Sees) any           { return []*T{} }
func (u reserved[T, O]) Get(string) (any, error) { return nil, u.kind.NotFound() }

func (u reserved[T, O]) Put(_ context.Context, key string, body []byte) (any, error) {
	if _, err := u.kind.Decode(key, body); err != nil {
		return nil, err
	}
	return nil, errs.New(errs.Invalid, "Invalid object type")
}

func (u reserved[T, O]) Delete(context.Context, string) error { return u.kind.NotFound() }

func (u reserved[T, O]) Inspect(context.Context, string) (any, error) { return nil, u.kind.NotFound() }
