package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/masterapi"
)

// Cluster returns the hosts of the cluster as the leader sees them.
func (c *Client) Cluster(ctx context.Context) (*clusterapi.Cluster, error) {
	v := new(clusterapi.Cluster)
	if err := c.call(ctx, http.MethodGet, clusterapi.PathCluster, nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Garbage removes what is left of hosts that have been down for longer than older, of
// all or, if it is named, of one host. dryRun: it only lists what that would be.
func (c *Client) Garbage(ctx context.Context, host string, older time.Duration, dryRun bool) ([]clusterapi.GoneHost, error) {
	query := url.Values{}
	query.Set(clusterapi.QueryOlder, older.String())
	if host != "" {
		query.Set(clusterapi.QueryHost, host)
	}
	method := http.MethodPost
	if dryRun {
		method = http.MethodGet
	}
	var gone []clusterapi.GoneHost
	err := c.call(ctx, method, clusterapi.PathGarbage+"?"+query.Encode(), nil, &gone)
	return gone, err
}

// Change is where a host has to be to have applied a change: store revisions of the
// state and of the global settings. 0 means that there is nothing to apply.
type Change struct{ Revision, Settings int64 }

// change sends a request that changes something, reads its answer into v, if v is not
// nil, and returns its revisions.
func (c *Client) change(ctx context.Context, method, path string, body, v any) (Change, error) {
	resp, err := c.Do(ctx, method, path, body)
	if err != nil {
		return Change{}, err
	}
	revision, _ := strconv.ParseInt(resp.Header.Get(masterapi.RevisionHeader), 10, 64)
	settings, _ := strconv.ParseInt(resp.Header.Get(masterapi.SettingsHeader), 10, 64)
	return Change{Revision: revision, Settings: settings}, readAnswer(resp, v)
}

// Applied waits until every live host has applied a change, but no longer than wait and
// clusterapi.MaxWait, and says which have not.
func (c *Client) Applied(ctx context.Context, ch Change, wait time.Duration) (*clusterapi.Applied, error) {
	query := url.Values{}
	query.Set(clusterapi.QueryRevision, strconv.FormatInt(ch.Revision, 10))
	query.Set(clusterapi.QuerySettings, strconv.FormatInt(ch.Settings, 10))
	query.Set(clusterapi.QueryWait, wait.String())
	v := new(clusterapi.Applied)
	if err := c.call(ctx, http.MethodGet, clusterapi.PathApplied+"?"+query.Encode(), nil, v); err != nil {
		return nil, err
	}
	return v, nil
}
