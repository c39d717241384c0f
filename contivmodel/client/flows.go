package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Flows calls take with each event of the connections that a filter selects: those recorded,
// and then, if the filter says so, what comes, until ctx ends, which is no error, or take
// returns an error, which is returned. A record replaces one of the same ID. When the stream
// breaks that is an error of kind Unavailable.
func (c *Client) Flows(ctx context.Context, f flowapi.Filter, take func(flowapi.Event) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(silence, func() { cancel(errs.New(errs.Timeout, "the server is silent")) })
	defer alarm.Stop()
	err := c.flows(inner, f, func(e flowapi.Event) error {
		alarm.Reset(silence)
		return take(e)
	})
	var stop *stopError
	switch {
	case errors.As(err, &stop):
		return stop.err
	case ctx.Err() != nil:
		return nil
	}
	return err
}

func (c *Client) flows(ctx context.Context, f flowapi.Filter, take func(flowapi.Event) error) error {
	resp, err := c.open(ctx, flowapi.PathMaster+"?"+f.Values().Encode(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	live := false
	for {
		line, err := readLine(in)
		switch {
		case err != nil && live && !f.Follow: // its end
			return nil
		case err != nil:
			return err
		}
		var e flowapi.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return errs.Wrap(errs.Internal, fmt.Errorf("the event is not what was expected: %w", err))
		}
		live = live || e.Heartbeat != nil && e.Heartbeat.Live
		if err := take(e); err != nil {
			return &stopError{err}
		}
	}
}
