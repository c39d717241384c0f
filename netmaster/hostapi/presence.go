package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// presentRoot holds a record for each host whose registry entries netmasters have written:
// what a new leader takes over, and what tells them from entries of agents that still write
// their own.
const presentRoot = state.OperRoot + "netmaster/present/"

// maxHosts bounds how many hosts are registered.
const maxHosts = 20_000

// presence keeps in the registry which agents live. Entries have no lease: what a leader has
// missed is made good by the next, and a change of leader lets nobody vanish.
type presence struct {
	cfg  Config
	kick chan struct{}

	mu    sync.Mutex
	hosts map[string]seen

	// entries and written belong to run.
	entries *delta.Map[string, masterapi.Presence]
	written map[string]int64 // revision of a host's entries, by label
}

// seen is what an agent has said last.
type seen struct {
	masterapi.Presence
	at time.Time
}

func newPresence(cfg Config) *presence {
	return &presence{
		cfg: cfg, kick: make(chan struct{}, 1), hosts: map[string]seen{},
		entries: delta.NewComparable[string, masterapi.Presence](), written: map[string]int64{},
	}
}

func (s *Server) putPresence(_ context.Context, label string, body []byte) (any, error) {
	var p masterapi.Presence
	if err := contivmodel.DecodeJSON(body, &p); err != nil {
		return nil, err
	}
	if err := checkID("host", label); err != nil {
		return nil, err
	}
	if !p.CtrlIP.IsValid() || !p.VTEP.IsValid() || p.CtrlIP.Zone()+p.VTEP.Zone() != "" || p.VXLANPort < 1 || p.VXLANPort > 65535 {
		return nil, errs.New(errs.Invalid, "presence of host %s: expected its control and tunnel address and the VXLAN port", label)
	}
	return struct{}{}, s.presence.see(label, p)
}

// see notes that an agent lives. An address is of one host at a time.
func (p *presence) see(label string, now masterapi.Presence) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, known := p.hosts[label]
	if !known && len(p.hosts) >= maxHosts {
		return errs.New(errs.Unavailable, "%d hosts are registered, host %s cannot be", maxHosts, label)
	}
	if !known || old.Presence != now {
		for other, h := range p.hosts {
			if other != label && h.CtrlIP == now.CtrlIP {
				return errs.New(errs.InUse, "host %s registers with control address %s, which is that of host %s", label, now.CtrlIP, other)
			}
		}
		p.wake()
	}
	p.hosts[label] = seen{now, time.Now()}
	return nil
}

// leave notes that an agent has stopped.
func (p *presence) leave(label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.hosts, label)
	p.wake()
}

func (p *presence) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// run brings the registry to what agents say.
func (p *presence) run(ctx context.Context) {
	again := retry.New(200*time.Millisecond, 5*time.Second)
	loaded := false
	for ctx.Err() == nil {
		var err error
		if !loaded {
			err = p.load(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = p.write(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				p.cfg.Log.WithError(err).Warn("cannot write the registry entries of agents; retrying")
			}
			again.Wait(ctx)
			continue
		}
		again.Reset()
		tick := time.NewTimer(objdb.ServiceTTL / 10)
		select {
		case <-ctx.Done():
		case <-p.kick:
		case <-tick.C:
		}
		tick.Stop()
	}
}

// load takes over what the previous leader has written. These hosts count as seen now: they
// have as long as ever to say that they live.
func (p *presence) load(ctx context.Context) error {
	kvs, _, err := p.cfg.Store.List(ctx, presentRoot)
	if err != nil {
		return fmt.Errorf("list the registered hosts: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kv := range kvs {
		label := kv.Key[len(presentRoot):]
		var rec masterapi.Presence
		if json.Unmarshal(kv.Value, &rec) != nil {
			continue
		}
		p.entries.SetActual(label, rec)
		p.written[label] = kv.ModRevision
		if _, known := p.hosts[label]; !known {
			p.hosts[label] = seen{rec, time.Now()}
		}
	}
	return nil
}

// alive is which agents live, without those that have been silent for too long.
func (p *presence) alive(now time.Time) map[string]masterapi.Presence {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]masterapi.Presence, len(p.hosts))
	for label, h := range p.hosts {
		if now.Sub(h.at) >= objdb.ServiceTTL {
			delete(p.hosts, label)
			continue
		}
		out[label] = h.Presence
	}
	return out
}

// hostsAtOnce is how many hosts one transaction registers: each is four operations.
const hostsAtOnce = 8

func (p *presence) write(ctx context.Context) error {
	p.entries.ReplaceDesired(p.alive(time.Now()))
	var fresh []delta.Change[string, masterapi.Presence]
	for _, c := range slices.Collect(p.entries.Pending()) {
		if c.Op != delta.Add { // the addresses of a host may have changed: the old entries go first
			if err := p.remove(ctx, c.Key, c.Have); err != nil {
				return fmt.Errorf("unregister host %s: %w", c.Key, err)
			}
		}
		if c.Op == delta.Remove {
			p.entries.Applied(c)
			continue
		}
		fresh = append(fresh, c)
	}
	for part := range slices.Chunk(fresh, hostsAtOnce) {
		var ops []objdb.Op
		for _, c := range part {
			these, err := put(c.Key, c.Want)
			if err != nil {
				return err
			}
			ops = append(ops, these...)
		}
		rev, err := p.cfg.fenced(ctx, ops...)
		if err != nil {
			return fmt.Errorf("register %d hosts: %w", len(part), err)
		}
		for _, c := range part {
			p.entries.Applied(c)
			p.written[c.Key] = rev
		}
	}
	return nil
}

// put is what registers a host.
func put(label string, h masterapi.Presence) ([]objdb.Op, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err)
	}
	ops := []objdb.Op{objdb.Put(presentRoot+label, value)}
	for _, info := range entries(label, h) {
		if value, err = json.Marshal(info); err != nil {
			return nil, errs.Wrap(errs.Internal, err)
		}
		ops = append(ops, objdb.Put(info.Key(), value))
	}
	return ops, nil
}

// remove unregisters a host, but for entries that somebody else has written since: an agent
// that registers itself.
func (p *presence) remove(ctx context.Context, label string, h masterapi.Presence) error {
	var errsOf error
	for _, info := range entries(label, h) {
		unchanged := objdb.Cmp{Type: objdb.CmpModRevision, Key: info.Key(), Revision: p.written[label]}
		if _, err := p.cfg.commit(ctx, []objdb.Cmp{unchanged}, objdb.Delete(info.Key())); err != nil && !errors.Is(err, objdb.ErrCompareFailed) {
			errsOf = errors.Join(errsOf, err)
		}
	}
	if errsOf != nil {
		return errsOf
	}
	if _, err := p.cfg.fenced(ctx, objdb.Delete(presentRoot+label)); err != nil {
		return err
	}
	delete(p.written, label)
	return nil
}

// entries lists the registry entries of an agent.
func entries(label string, h masterapi.Presence) []objdb.ServiceInfo {
	entry := func(name string, addr netip.Addr, port int) objdb.ServiceInfo {
		return objdb.ServiceInfo{ServiceName: name, HostAddr: addr.String(), Port: port, Hostname: label, TTL: int(objdb.ServiceTTL / time.Second)}
	}
	return []objdb.ServiceInfo{
		entry(clusterapi.AgentService, h.CtrlIP, clusterapi.AgentVXLANPort),
		entry(clusterapi.AgentService, h.CtrlIP, clusterapi.AgentVLANPort),
		entry(clusterapi.VTEPService, h.VTEP, h.VXLANPort),
	}
}
