package agents

import (
	"context"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
)

// Ask asks the agent of a host what NetworkPolicies say of a connection of one of its
// endpoints.
func (c *Client) Ask(ctx context.Context, host string, q flowapi.PolicyQuestion) (decisions []flowapi.Decision, err error) {
	err = c.ask(ctx, question{host, http.MethodPost, flowapi.PathAgentAsk, "explain NetworkPolicies"}, q, &decisions)
	return decisions, err
}

// TryPolicies asks the agent of a host what NetworkPolicies would have done to the connections
// it has recorded.
func (c *Client) TryPolicies(ctx context.Context, host string, req flowapi.PolicyPreviewRequest) (*flowapi.Preview, error) {
	out := &flowapi.Preview{}
	return out, c.ask(ctx, question{host, http.MethodPost, flowapi.PathAgentTests, "preview NetworkPolicies"}, req, out)
}

// FlowHits asks the agent of a host how often rules have decided, and since when it counts.
func (c *Client) FlowHits(ctx context.Context, host string) (hits []flowapi.Hits, since time.Time, err error) {
	header, err := c.askHeader(ctx, question{host, http.MethodGet, flowapi.PathAgentHits, "count what rules decide"}, nil, &hits)
	if err != nil {
		return nil, since, err
	}
	since, _ = time.Parse(time.RFC3339, header.Get(flowapi.HeaderSince)) // one that does not say has counted for long
	return hits, since, nil
}
