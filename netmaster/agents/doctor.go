package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Facts is what an agent has told of its host, and when.
type Facts struct {
	doctorapi.Host
	Asked, Answered time.Time // by the clock of this host
}

// Labels returns the labels of the hosts whose agents are registered, sorted.
func (c *Client) Labels(ctx context.Context) ([]string, error) {
	hosts, err := c.hosts(ctx)
	if err != nil {
		return nil, err
	}
	labels := make([]string, 0, len(hosts))
	for label := range hosts {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels, nil
}

// Facts asks the agents of hosts what they know of them, all at the same time. Hosts whose
// agents do not answer before ctx ends are in away, with the reason.
func (c *Client) Facts(ctx context.Context, hosts []string) (facts map[string]Facts, away map[string]error) {
	return askAll(ctx, c, hosts, func(ctx context.Context, _, addr string) (Facts, error) {
		f := Facts{Asked: time.Now()}
		err := c.exchangeJSON(ctx, addr, http.MethodGet, doctorapi.PathAgent, nil, &f.Host)
		f.Answered = time.Now()
		return f, err
	})
}

// Probe has the agents of hosts send probes through their tunnels. Those that did not are in
// failed, with the reason.
func (c *Client) Probe(ctx context.Context, probes map[string]doctorapi.Probe) (failed map[string]error) {
	var hosts []string
	for host := range probes {
		hosts = append(hosts, host)
	}
	_, failed = askAll(ctx, c, hosts, func(ctx context.Context, host, addr string) (sent doctorapi.ProbeSent, err error) {
		err = c.exchangeJSON(ctx, addr, http.MethodPost, doctorapi.PathProbe, probes[host], &sent)
		return sent, err
	})
	return failed
}

// exchangeJSON is exchange with bodies of JSON; body may be nil.
func (c *Client) exchangeJSON(ctx context.Context, addr, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return errs.Wrap(errs.Internal, err)
		}
	}
	status, answer, err := c.exchange(ctx, addr, method, path, text)
	switch {
	case err != nil:
		return err
	case status == http.StatusNotFound:
		return errs.New(errs.Internal, "its netplugin is of a version that cannot be asked; upgrade it")
	}
	if err := refusal(status, answer); err != nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return errs.New(errs.Internal, "its netplugin's answer cannot be read: %w", err)
	}
	return nil
}

// askAll asks the agents of hosts, a number of them at the same time. One that is not
// registered fails with NotFound.
func askAll[T any](ctx context.Context, c *Client, hosts []string, ask func(ctx context.Context, host, addr string) (T, error)) (map[string]T, map[string]error) {
	answers, failed := map[string]T{}, map[string]error{}
	known, err := c.hosts(ctx)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, host := range hosts {
		addr, ok := known[host]
		switch {
		case err != nil:
			failed[host] = err
			continue
		case !ok:
			failed[host] = errs.New(errs.NotFound, "no agent of host %q is registered", host)
			continue
		}
		g.Go(func() error {
			answer, err := ask(ctx, host, addr)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[host] = fmt.Errorf("ask host %s: %w", host, err)
			} else {
				answers[host] = answer
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	return answers, failed
}
