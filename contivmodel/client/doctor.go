package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/contiv/netplugin/state/doctorapi"
)

// Doctor asks what is wrong with the cluster, or with the hosts that are named.
func (c *Client) Doctor(ctx context.Context, hosts ...string) (*doctorapi.Report, error) {
	path := doctorapi.PathMaster
	if len(hosts) > 0 {
		path += "?" + url.Values{doctorapi.QueryHost: hosts}.Encode()
	}
	v := new(doctorapi.Report)
	if err := c.call(ctx, http.MethodGet, path, nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Health is what a netmaster says of itself, leader or not.
type Health struct {
	Status  string   `json:"status"` // ok | degraded
	Role    string   `json:"role"`   // leader | follower
	Leader  string   `json:"leader"` // ip:port; empty: there is none
	Reasons []string `json:"reasons"`
}

// Health asks the first netmaster that answers how it is.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	resp, err := c.Do(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		resp.StatusCode = http.StatusOK // the reasons are in the body
	}
	v := new(Health)
	return v, readAnswer(resp, v)
}
