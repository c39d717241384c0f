package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

const (
	maxEvent = 64 << 10         // bytes of a line
	quiet    = 45 * time.Second // without any line; agents give one every 15 s
)

// Hosts returns the labels of the hosts whose agents are registered.
func (c *Client) Hosts(ctx context.Context) ([]string, error) {
	hosts, err := c.hosts(ctx)
	labels := make([]string, 0, len(hosts))
	for label := range hosts {
		labels = append(labels, label)
	}
	return labels, err
}

// Flows asks the agent of a host for the connections that it has seen, and calls take for each
// event until the agent has told all or, if it is to go on, until ctx ends. An error of take
// ends it, too.
func (c *Client) Flows(ctx context.Context, host string, f flowapi.Filter, take func(flowapi.Event) error) error {
	addr, err := c.find(ctx, host)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(timeout, func() { cancel(errs.New(errs.Timeout, "the agent is silent")) })
	defer alarm.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(addr, flowapi.PathAgent+"?"+f.Values().Encode()), nil)
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	resp, err := c.open.Do(req)
	if err != nil {
		return errs.Wrap(errs.Unavailable, fmt.Errorf("the agent does not answer: %w", causeOf(ctx, err)))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // what there is, is shown
		return question{cannot: "tell of connections"}.refusal(resp.StatusCode, text)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, maxEvent)
	for alarm.Reset(quiet); in.Scan(); alarm.Reset(quiet) {
		var event flowapi.Event
		if err := json.Unmarshal(in.Bytes(), &event); err != nil {
			return errs.New(errs.Internal, "the agent's answer cannot be read: %w", err)
		}
		alarm.Stop() // whoever takes the event may take its time
		if err := take(event); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return errs.Wrap(errs.Unavailable, fmt.Errorf("the agent's answer broke off: %w", causeOf(ctx, err)))
	}
	return nil
}

// causeOf says why a request was given up, if it was.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
