package agents

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/utils/errs"
)

// askAll asks the agents of hosts, a number of them at the same time; the registry is read
// once. One that is not registered fails with NotFound.
func askAll[T any](ctx context.Context, c *Client, hosts []string, ask func(ctx context.Context, host, addr string) (T, error)) (map[string]T, map[string]error) {
	known, err := c.hosts(ctx)
	registered, unknown := map[string]string{}, map[string]error{}
	for _, host := range hosts {
		addr, ok := known[host]
		switch {
		case err != nil:
			unknown[host] = err
		case !ok:
			unknown[host] = errs.New(errs.NotFound, "no agent of host %q is registered", host)
		default:
			registered[host] = addr
		}
	}
	answers, failed := each(ctx, registered, ask)
	for host, err := range unknown {
		failed[host] = err
	}
	return answers, failed
}

// each asks agents, by host, a number of them at the same time. at is what they are reached by.
func each[V, T any](ctx context.Context, at map[string]V, ask func(ctx context.Context, host string, at V) (T, error)) (map[string]T, map[string]error) {
	answers, failed := map[string]T{}, map[string]error{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for host, v := range at {
		g.Go(func() error {
			answer, err := ask(ctx, host, v)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[host] = err
			} else {
				answers[host] = answer
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	return answers, failed
}
