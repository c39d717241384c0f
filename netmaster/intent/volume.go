package intent

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

// unmade serves a kind of which no objects can be made.
type unmade[T, O any] struct{ kind contivmodel.Kind[T, O] }

func volumes() Collection {
	return unmade[contivmodel.Volume, contivmodel.NoOper]{contivmodel.VolumeKind()}
}

func volumeProfiles() Collection {
	return unmade[contivmodel.VolumeProfile, contivmodel.NoOper]{contivmodel.VolumeProfileKind()}
}

func (u unmade[T, O]) Name() string            { return u.kind.Collection }
func (u unmade[T, O]) List() any               { return []*T{} }
func (u unmade[T, O]) Get(string) (any, error) { return nil, u.kind.NotFound() }

func (u unmade[T, O]) Put(_ context.Context, key string, body []byte) (any, error) {
	if _, err := u.kind.Decode(key, body); err != nil {
		return nil, err
	}
	return nil, errs.New(errs.Invalid, "Invalid object type")
}

func (u unmade[T, O]) Delete(context.Context, string) error { return u.kind.NotFound() }

func (u unmade[T, O]) Inspect(context.Context, string) (any, error) { return nil, u.kind.NotFound() }
