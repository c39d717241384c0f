package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/version"
)

// CreateEndpoint asks for an endpoint. The second result is the store revision at
// which its record can be seen, 0 if the server does not tell.
func (c *Client) CreateEndpoint(ctx context.Context, req masterapi.CreateEndpointRequest) (*masterapi.CreateEndpointResponse, int64, error) {
	return plugin[masterapi.CreateEndpointResponse](ctx, c, masterapi.PathCreateEndpoint, req)
}

// DeleteEndpoint removes an endpoint. The second result is the store revision at
// which its record is gone, 0 if the server does not tell.
func (c *Client) DeleteEndpoint(ctx context.Context, req masterapi.DeleteEndpointRequest) (*masterapi.DeleteEndpointResponse, int64, error) {
	return plugin[masterapi.DeleteEndpointResponse](ctx, c, masterapi.PathDeleteEndpoint, req)
}

// UpdateEndpoint reports a container event.
func (c *Client) UpdateEndpoint(ctx context.Context, req masterapi.UpdateEndpointRequest) error {
	_, _, err := plugin[masterapi.UpdateEndpointResponse](ctx, c, masterapi.PathUpdateEndpoint, req)
	return err
}

// AllocAddress reserves an address.
func (c *Client) AllocAddress(ctx context.Context, req masterapi.AllocAddressRequest) (*masterapi.AllocAddressResponse, error) {
	resp, _, err := plugin[masterapi.AllocAddressResponse](ctx, c, masterapi.PathAllocAddress, req)
	return resp, err
}

// ReleaseAddress gives a reserved address back.
func (c *Client) ReleaseAddress(ctx context.Context, req masterapi.ReleaseAddressRequest) error {
	_, _, err := plugin[masterapi.ReleaseAddressResponse](ctx, c, masterapi.PathReleaseAddress, req)
	return err
}

func plugin[Resp any](ctx context.Context, c *Client, path string, req any) (*Resp, int64, error) {
	resp, err := c.Do(ctx, http.MethodPost, path, req)
	if err != nil {
		return nil, 0, err
	}
	v := new(Resp)
	if err := readAnswer(resp, v); err != nil {
		return nil, 0, err
	}
	rev, _ := strconv.ParseInt(resp.Header.Get(masterapi.RevisionHeader), 10, 64)
	return v, rev, nil
}

// Version returns what the server says it is.
func (c *Client) Version(ctx context.Context) (*version.Info, error) {
	v := new(version.Info)
	if err := c.call(ctx, http.MethodGet, "/version", nil, v); err != nil {
		return nil, err
	}
	return v, nil
}
