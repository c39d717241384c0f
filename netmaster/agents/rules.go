package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// silence is how long an agent may take to say what its rules have decided: who inspects
// a policy shall not wait for hosts that are unreachable.
const silence = 2 * time.Second

// Hits is how often a rule has decided: the packets, and their bytes, that open a
// connection or are denied.
type Hits struct{ Packets, Bytes uint64 }

// RuleHits asks the agents of all hosts how often rules have decided, and sums up their
// answers by the id of the rule's record. silent are the hosts that did not answer,
// sorted; asked is the number of those that did.
func (c *Client) RuleHits(ctx context.Context) (hits map[string]Hits, asked int, silent []string, err error) {
	hosts, err := c.hosts(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	answers, failed := each(ctx, hosts, func(ctx context.Context, _, addr string) (map[string]Hits, error) { return c.ruleHits(ctx, addr) })
	hits = map[string]Hits{}
	for _, one := range answers {
		for id, h := range one {
			sum := hits[id]
			hits[id] = Hits{sum.Packets + h.Packets, sum.Bytes + h.Bytes}
		}
	}
	return hits, len(answers), slices.Sorted(maps.Keys(failed)), nil
}

func (c *Client) ruleHits(ctx context.Context, addr string) (hits map[string]Hits, err error) {
	status, text, err := c.exchange(ctx, addr, http.MethodGet, "/inspect/rules", nil)
	if err == nil {
		err = refusal(status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, &hits)
	}
	return hits, err
}

// hosts returns the address of each host's agent, by host label.
func (c *Client) hosts(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, service := range []string{"netplugin.vtep/", "netplugin/"} { // the latter's count
		kvs, _, err := c.store.List(ctx, state.ServiceRoot+service)
		if err != nil {
			return nil, fmt.Errorf("read the registry: %w", err)
		}
		addrs := map[string]string{}
		for _, kv := range kvs {
			var info objdb.ServiceInfo
			if json.Unmarshal(kv.Value, &info) != nil || info.Hostname == "" || info.HostAddr == "" {
				continue
			}
			if _, known := addrs[info.Hostname]; !known {
				addrs[info.Hostname] = info.HostAddr
			}
		}
		maps.Copy(found, addrs)
	}
	return found, nil
}
