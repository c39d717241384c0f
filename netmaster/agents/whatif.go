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
	err = c.ask(ctx, host, question{http.MethodPost, flowapi.PathAgentAsk, "explain NetworkPolicies"}, q, &decisions)
	return decisions, err
}

// Find asks the agent of a host which Service of Kubernetes is meant.
func (c *Client) Find(ctx context.Context, host string, q flowapi.ServiceQuestion) (answer flowapi.ServiceAnswer, err error) {
	err = c.ask(ctx, host, question{http.MethodPost, flowapi.PathAgentOf, "find Services of Kubernetes"}, q, &answer)
	return answer, err
}

// TryPolicies asks the agents of hosts what NetworkPolicies would have done to the connections
// they have recorded. Those that did not answer are in failed, with the reason.
func (c *Client) TryPolicies(ctx context.Context, hosts []string, req flowapi.PolicyPreviewRequest) (previews map[string]flowapi.Preview, failed map[string]error) {
	q := question{http.MethodPost, flowapi.PathAgentTests, "preview NetworkPolicies"}
	return askAll(ctx, c, hosts, func(ctx context.Context, _, addr string) (out flowapi.Preview, err error) {
		_, err = c.askAt(ctx, addr, q, req, &out)
		return out, err
	})
}

// FlowHits is how often rules have decided on a host, and since when it counts.
type FlowHits struct {
	Hits  []flowapi.Hits
	Since time.Time // zero: for long
}

// FlowHits asks the agents of hosts how often rules have decided. Those that did not answer are
// in failed, with the reason.
func (c *Client) FlowHits(ctx context.Context, hosts []string) (hits map[string]FlowHits, failed map[string]error) {
	q := question{http.MethodGet, flowapi.PathAgentHits, "count what rules decide"}
	return askAll(ctx, c, hosts, func(ctx context.Context, _, addr string) (out FlowHits, err error) {
		header, err := c.askAt(ctx, addr, q, nil, &out.Hits)
		out.Since, _ = time.Parse(time.RFC3339, header.Get(flowapi.HeaderSince)) // one that does not say has counted for long
		return out, err
	})
}
