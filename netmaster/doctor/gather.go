package doctor

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// Clients wait 10 s for the whole.
const (
	askWithin    = 3 * time.Second // how long agents may take to answer
	settleWithin = time.Second     // how long a change may be on its way to a host before that is behind
)

// Agents are asked about their hosts; see agents.Client.
type Agents interface {
	Facts(ctx context.Context, hosts []string) (facts map[string]agents.Facts, away map[string]error)
	Probe(ctx context.Context, probes map[string]doctorapi.Probe) (failed map[string]error)
}

// Config is where facts come from.
type Config struct {
	Agents Agents
	// Cluster tells of the hosts as the leader sees them.
	Cluster func(ctx context.Context) (*clusterapi.Cluster, error)
	// Applied waits until every host has applied revisions of the state and of the settings, or
	// ctx ends.
	Applied func(ctx context.Context, revision, settings int64) clusterapi.Applied
	// EndpointsOf returns the ids of the endpoints that are homed on a host.
	EndpointsOf func(host string) []string
	// Masters lists the netmasters; nil: they are not known.
	Masters func() []cluster.Master
	Store   objdb.Store
	// Own tells of this netmaster; nil: nothing is known.
	Own func() Own
}

// Own is what a netmaster knows of itself.
type Own struct {
	Disk        Disk
	Certificate *doctorapi.Certificate
	Authority   *doctorapi.Certificate
}

// Run examines the cluster, or only the hosts named. A host that nobody knows is NotFound.
func Run(ctx context.Context, cfg Config, only []string) (*doctorapi.Report, error) {
	f, err := gather(ctx, cfg, only)
	if err != nil {
		return nil, err
	}
	r := &doctorapi.Report{Made: f.Now.UTC(), Asked: f.labels(), Away: []doctorapi.Away{}}
	for _, label := range slices.Sorted(maps.Keys(f.Away)) {
		r.Away = append(r.Away, doctorapi.Away{Host: label, Why: f.Away[label].Error()})
	}
	r.Findings, r.Checks = Examine(f)
	return r, nil
}

// gather collects the facts.
func gather(ctx context.Context, cfg Config, only []string) (*Facts, error) {
	c, err := settledCluster(ctx, cfg)
	if err != nil {
		return nil, err
	}
	f := &Facts{Now: time.Now(), Cluster: *c, Endpoints: map[string][]string{}}
	if len(only) > 0 {
		for _, label := range only {
			if !slices.ContainsFunc(f.Cluster.Hosts, func(h clusterapi.Host) bool { return h.Host == label }) {
				return nil, errs.New(errs.NotFound, "host %.80q is not known: see netctl cluster ls", label)
			}
		}
		f.Cluster.Hosts = slices.DeleteFunc(slices.Clone(f.Cluster.Hosts), func(h clusterapi.Host) bool { return !slices.Contains(only, h.Host) })
	}
	labels := registered(f.Cluster.Hosts)
	f.Before, f.Away = ask(ctx, cfg.Agents, labels)
	f.Hosts = maps.Clone(f.Before)
	for _, label := range labels {
		f.Endpoints[label] = cfg.EndpointsOf(label)
	}
	if p := newProber(cfg.Agents, f.Before); p != nil {
		var after map[string]agents.Facts
		f.Tunnels, after = p.run(ctx)
		maps.Copy(f.Hosts, after)
	} else if len(leaks.find(f)) > 0 && retry.Pause(ctx, settleWithin) {
		after, _ := ask(ctx, cfg.Agents, f.labels())
		maps.Copy(f.Hosts, after)
	}
	if cfg.Store != nil {
		f.StoreDelay, f.Members = measureStore(ctx, cfg.Store.Health), membersOf(ctx, cfg.Store)
	}
	if cfg.Masters != nil {
		f.Masters = askMasters(ctx, cfg.Masters())
	}
	if cfg.Own != nil {
		own := cfg.Own()
		f.Disk, f.Certificate, f.Authority = own.Disk, own.Certificate, own.Authority
	}
	return f, nil
}

// settledCluster returns the hosts after what had been written at the call has had time to
// come to them. A host is behind if it has not come.
func settledCluster(ctx context.Context, cfg Config) (*clusterapi.Cluster, error) {
	before, err := cfg.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, settleWithin)
	cfg.Applied(wait, before.Revision, before.Settings)
	cancel()
	c, err := cfg.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	c.Revision, c.Settings = before.Revision, before.Settings
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.Lag = max(c.Revision-h.Revision, c.Settings-h.Settings, 0)
	}
	return c, nil
}

// registered lists the hosts that have an agent which could answer.
func registered(hosts []clusterapi.Host) (labels []string) {
	for _, h := range hosts {
		if h.State != clusterapi.Gone {
			labels = append(labels, h.Host)
		}
	}
	return labels
}

func ask(ctx context.Context, a Agents, labels []string) (map[string]agents.Facts, map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return a.Facts(ctx, labels)
}
