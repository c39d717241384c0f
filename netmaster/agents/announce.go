package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// atOnce bounds how many agents are asked at the same time.
const atOnce = 32

// Announce asks the agents of all hosts to announce the endpoints of a group in the
// underlay; 0 means all endpoints. An agent that does not answer holds up no other. It
// returns how many endpoints that concerns, and why which agents could not be asked.
func (c *Client) Announce(ctx context.Context, group int) (int, error) {
	kvs, _, err := c.store.List(ctx, state.ServiceRoot+clusterapi.AgentService+"/")
	if err != nil {
		return 0, fmt.Errorf("read the registry: %w", err)
	}
	ports := map[string]objdb.ServiceInfo{} // one of an agent's two is enough
	for _, kv := range kvs {
		var info objdb.ServiceInfo
		if json.Unmarshal(kv.Value, &info) == nil && info.HostAddr != "" {
			ports[info.Hostname] = info
		}
	}
	answers, failed := each(ctx, ports, func(ctx context.Context, host string, info objdb.ServiceInfo) (int, error) {
		n, err := c.announce(ctx, info, group)
		if err != nil {
			return 0, fmt.Errorf("have host %s announce group %d: %w", host, group, err)
		}
		return n, nil
	})
	total := 0
	for _, n := range answers {
		total += n
	}
	return total, errors.Join(slices.Collect(maps.Values(failed))...)
}

func (c *Client) announce(ctx context.Context, info objdb.ServiceInfo, group int) (int, error) {
	body, err := json.Marshal(clusterapi.AnnounceRequest{Group: group})
	if err != nil {
		return 0, errs.Wrap(errs.Internal, err)
	}
	target := "http://" + net.JoinHostPort(info.HostAddr, strconv.Itoa(info.Port)) + clusterapi.PathAnnounce
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, errs.Wrap(errs.Internal, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("the agent does not answer: %w", err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, clusterapi.MaxBody))
	if err != nil {
		return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("read the agent's answer: %w", err))
	}
	if err := refusal(resp.StatusCode, text); err != nil {
		return 0, err
	}
	var answer clusterapi.AnnounceResponse
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, errs.Wrap(errs.Internal, fmt.Errorf("the agent's answer: %w", err))
	}
	return answer.Endpoints, nil
}
