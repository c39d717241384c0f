package flows

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

const (
	// Heartbeat is how often a stream that has nothing to say shows that it lives.
	Heartbeat = 15 * time.Second
	// newcomers is how often it is looked for hosts that have come.
	newcomers = 10 * time.Second
	queued    = 64 // events of a host
	mostAsked = 32 // streams at a time
)

// Agents are asked for what they have seen.
type Agents interface {
	// Hosts returns the labels of the hosts whose agents can be asked.
	Hosts(ctx context.Context) ([]string, error)
	// Flows calls take for each event of an agent; see agents.Client.
	Flows(ctx context.Context, host string, f flowapi.Filter, take func(flowapi.Event) error) error
}

// Cluster knows the hosts that have ever been part of the cluster.
type Cluster interface {
	HostRecords(ctx context.Context) (map[string]state.Host, error)
}

// Service tells of connections. Create it with New. Safe for concurrent use.
type Service struct {
	agents  Agents
	cluster Cluster
	term    context.Context // streams end with it
	turns   chan struct{}
}

// New returns a Service whose streams end with ctx.
func New(ctx context.Context, agents Agents, cluster Cluster) *Service {
	return &Service{agents: agents, cluster: cluster, term: ctx, turns: make(chan struct{}, mostAsked)}
}

// Stream tells of the connections that a filter selects, as far as they are shown: those that
// were recorded by time, then a Heartbeat that says so, and then, if the filter says so, what
// comes, until ctx ends. more is false when nothing further is at hand: what was told should
// not wait any longer.
func (s *Service) Stream(ctx context.Context, f flowapi.Filter, sees Sees, tell func(e flowapi.Event, more bool) error) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	default:
		return errs.New(errs.Unavailable, "%d clients are being told of connections already; retry later", mostAsked)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.term, cancel)()
	st := newStream(s, f, sees, tell)
	defer st.sources.Wait()
	defer cancel() // before it is waited for the sources
	if err := st.begin(ctx); err != nil {
		return err
	}
	if err := st.backlog(ctx); err != nil {
		return err
	}
	return st.rest(ctx)
}

// hosts returns the hosts that can be asked, and those that cannot, sorted.
func (s *Service) hosts(ctx context.Context) (there, away []string, err error) {
	if there, err = s.agents.Hosts(ctx); err != nil {
		return nil, nil, err
	}
	known, err := s.cluster.HostRecords(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, host := range there {
		delete(known, host)
	}
	slices.Sort(there)
	return there, slices.Sorted(maps.Keys(known)), nil
}

// unregistered says why a host cannot be asked.
func unregistered(host string) flowapi.Missing {
	return flowapi.Missing{Host: host, Error: "its netplugin is not registered: it is down, or cannot reach the store"}
}

// forAgents is the part of a filter that both ends of a connection answer alike: the other
// part would keep one of two halves back.
func forAgents(f flowapi.Filter) flowapi.Filter {
	part := flowapi.Filter{Tenants: f.Tenants, Proto: f.Proto, Since: f.Since, Until: f.Until, Follow: f.Follow}
	whole := f
	whole.Limit = 0
	if f.Limit != 0 && len(whole.Values()) == len(part.Values()) {
		part.Limit = 2 * f.Limit // the newest of all are among the newest of each, whichever end is told first
	}
	return part
}
