package agents

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
)

// Facts is what an agent has told of its host, and when.
type Facts struct {
	doctorapi.Host
	Asked, Answered time.Time // by the clock of this host
}

// Facts asks the agents of hosts what they know of them, all at the same time. Hosts whose
// agents do not answer before ctx ends are in away, with the reason.
func (c *Client) Facts(ctx context.Context, hosts []string) (facts map[string]Facts, away map[string]error) {
	return askAll(ctx, c, hosts, func(ctx context.Context, host, addr string) (Facts, error) {
		f := Facts{Asked: time.Now()}
		_, err := c.askAt(ctx, addr, question{http.MethodGet, doctorapi.PathAgent, "say what is wrong with its host"}, nil, &f.Host)
		f.Answered = time.Now()
		return f, ofHost(host, err)
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
		_, err = c.askAt(ctx, addr, question{http.MethodPost, doctorapi.PathProbe, "send probes"}, probes[host], &sent)
		return sent, ofHost(host, err)
	})
	return failed
}

// ofHost names the host in an error.
func ofHost(host string, err error) error {
	if err != nil {
		return fmt.Errorf("ask host %s: %w", host, err)
	}
	return nil
}
