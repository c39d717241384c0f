package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
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
		err := c.exchangeJSON(ctx, addr, http.MethodGet, doctorapi.PathAgent, nil, &f.Host)
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
		err = c.exchangeJSON(ctx, addr, http.MethodPost, doctorapi.PathProbe, probes[host], &sent)
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
