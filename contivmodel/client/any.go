package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

// ListAny is List for a kind whose Go type is not known: it returns objects as kind
// makes them.
func ListAny(ctx context.Context, c *Client, kind contivmodel.AnyKind) ([]any, error) {
	about := kind.Description()
	var texts []json.RawMessage
	if err := c.call(ctx, http.MethodGet, objectPath(about.Collection), nil, &texts); err != nil {
		return nil, err
	}
	objs := make([]any, len(texts))
	for i, text := range texts {
		objs[i] = kind.Empty()
		if err := json.Unmarshal(text, objs[i]); err != nil {
			return nil, errs.Wrap(errs.Internal, fmt.Errorf("read an object of type %s: %w", about.Type, err))
		}
	}
	return objs, nil
}

// PutAny is PutChange for a kind whose Go type is not known.
func PutAny(ctx context.Context, c *Client, kind contivmodel.AnyKind, key string, obj any) (Change, error) {
	return c.change(ctx, http.MethodPost, objectPath(kind.Description().Collection, key), obj, kind.Empty())
}
