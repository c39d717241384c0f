package flows

import (
	"context"
	"errors"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/retry"
)

// said is what the agent of a host has said.
type said struct {
	host  string
	event flowapi.Event
}

// source asks the agent of a host.
type source struct {
	host   string
	agents Agents
	filter flowapi.Filter
	out    chan said // closed when no more will come
}

// errGone ends a stream whose reader has gone.
var errGone = errors.New("nobody listens")

// run follows the agent until ctx ends or, if it is not to go on, it has told everything. An
// agent that is lost is asked for the rest when it is back; that it was lost is told once.
func (s *source) run(ctx context.Context) {
	defer close(s.out)
	again := retry.New(time.Second, 15*time.Second)
	lost := false
	for {
		err := s.agents.Flows(ctx, s.host, s.filter, func(e flowapi.Event) error {
			if e.Record != nil && e.Record.ID > s.filter.After { // IDs grow
				s.filter.After = e.Record.ID
			}
			if e.Missing != nil { // what an agent may not say
				return nil
			}
			lost = false
			again.Reset()
			return s.send(ctx, e)
		})
		if ctx.Err() != nil || err == nil && !s.filter.Follow {
			return
		}
		if err == nil {
			err = errors.New("the agent ended its answer")
		}
		if !lost && s.send(ctx, flowapi.Event{Missing: &flowapi.Missing{Host: s.host, Error: err.Error()}}) != nil || !s.filter.Follow {
			return
		}
		lost = true
		if !again.Wait(ctx) {
			return
		}
	}
}

func (s *source) send(ctx context.Context, e flowapi.Event) error {
	select {
	case s.out <- said{s.host, e}:
		return nil
	case <-ctx.Done():
		return errGone
	}
}
