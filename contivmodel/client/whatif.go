package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/contiv/netplugin/state/flowapi"
)

// Explain asks what rules decide about a connection.
func (c *Client) Explain(ctx context.Context, q flowapi.Question) (*flowapi.Explanation, error) {
	v := new(flowapi.Explanation)
	return v, c.call(ctx, http.MethodGet, flowapi.PathExplain+"?"+q.Values().Encode(), nil, v)
}

// Preview asks what changes would have done to the connections that were recorded.
func (c *Client) Preview(ctx context.Context, req flowapi.PreviewRequest) (*flowapi.Preview, error) {
	v := new(flowapi.Preview)
	return v, c.call(ctx, http.MethodPost, flowapi.PathPreview, req, v)
}

// Hits asks how often rules have decided, of some tenants or, for none, of all that are shown.
func (c *Client) Hits(ctx context.Context, tenants ...string) (*flowapi.HitsAnswer, error) {
	v := new(flowapi.HitsAnswer)
	return v, c.call(ctx, http.MethodGet, flowapi.PathHits+"?"+url.Values{"tenant": tenants}.Encode(), nil, v)
}
