package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/contiv/netplugin/state/traceapi"
)

// Trace asks what becomes of a packet, and of the answer to it.
func (c *Client) Trace(ctx context.Context, q traceapi.Query) (*traceapi.Trace, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		traceapi.QueryFrom: q.From, traceapi.QueryTo: q.To, traceapi.QueryTenant: q.Tenant, traceapi.QueryProto: q.Proto,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]int{traceapi.QueryPort: int(q.Port), traceapi.QueryFamily: q.Family} {
		if value != 0 {
			query.Set(name, strconv.Itoa(value))
		}
	}
	v := new(traceapi.Trace)
	if err := c.call(ctx, http.MethodGet, traceapi.PathMaster+"?"+query.Encode(), nil, v); err != nil {
		return nil, err
	}
	return v, nil
}
