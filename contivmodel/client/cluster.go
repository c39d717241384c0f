package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/contiv/netplugin/state/clusterapi"
)

// Cluster returns the hosts of the cluster as the leader sees them.
func (c *Client) Cluster(ctx context.Context) (*clusterapi.Cluster, error) {
	v := new(clusterapi.Cluster)
	if err := c.call(ctx, http.MethodGet, clusterapi.PathCluster, nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Change is where a host has to be to have applied a change: store revisions of the
// state and of the global settings.
type Change struct{ Revision, Settings int64 }

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
