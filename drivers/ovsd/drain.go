package ovsd

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/ofnet"
)

// atOnce is how many rows are computed while the driver's lock is held.
const atOnce = 256

// drain computes what has changed, and passes it to the switches and observers until ctx
// ends. Nothing else passes programs to the switches.
func (d *Driver) drain(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.kick:
			d.pass()
		case <-d.forgets.due():
			for _, before := range d.forgets.take(time.Now()) {
				d.forgetAgain(before)
			}
		}
	}
}

func (d *Driver) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// pass computes everything that is marked. Owners get their new programs before other
// owners lose theirs: something is removed only after the references to it. Rules and
// policies come before the flows that have connections re-evaluated.
func (d *Driver) pass() {
	d.mu.Lock()
	d.begun++
	sweeps := d.sweeps
	d.sweeps = nil
	d.mu.Unlock()
	gone := newRemovals()
	for done := false; !done; {
		d.mu.Lock()
		var out []compiler.Output
		out, done = d.compiler.Step(atOnce)
		d.mu.Unlock()
		for _, o := range out {
			if o.Owner == "" {
				d.tell(o.Kind, o.Key)
				continue
			}
			if o.Kind == compiler.TenantFlows {
				gone.carryOut(ofPolicies) // or connections would be evaluated against them one last time
			}
			for encap, s := range d.bridges {
				if p := *o.In(encap); p.Empty() {
					gone.add(s.sw, o.Kind, o.Owner)
				} else {
					gone.cancel(s.sw, o.Owner)
					s.sw.Set(o.Owner, p)
				}
			}
			if o.Now != nil {
				d.forget(*o.Before, *o.Now)
			}
		}
	}
	gone.carryOut(func(compiler.Kind) bool { return true })
	for _, source := range sweeps {
		d.sweep(source)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = d.begun
	d.forgetTenants()
	if slices.Contains(sweeps, drivers.SourceStore) {
		d.whole = true // only now may the router and the host plan remove what an earlier agent has installed
		d.router.wake()
		d.host.Kick()
	}
	if d.vrfs.unsaved(d.compiler.VRFs) {
		d.wantRepair()
		d.limits.wake()
	}
	if d.compiler.Dirty() {
		d.wake()
	}
	d.changed.Broadcast()
}

// tell notifies the observers of a kind.
func (d *Driver) tell(k compiler.Kind, key string) {
	switch k {
	case compiler.Pipeline:
		d.learn()
	case compiler.Announcement:
		d.announceChanged(key)
	case compiler.Neighbor:
		d.warmUp(key)
	case compiler.BGP:
		d.router.wake()
	case compiler.HostPlan:
		d.host.Kick()
	case compiler.Ports:
		d.wantRepair()
	}
}

// learn configures the tables in which the bridges learn flows themselves.
func (d *Driver) learn() {
	for _, s := range d.bridges {
		d.mu.Lock()
		p := d.pipeline(s)
		d.mu.Unlock()
		if p != nil {
			s.sw.SetLearned(p.Learned()...)
		}
	}
}

// busy reports whether changes are still to be passed on. The caller holds mu.
func (d *Driver) busy() bool {
	return d.compiler.Dirty() || len(d.sweeps) > 0 || d.ended < d.begun
}

// drained waits until all changes made before the call have been passed to the switches.
func (d *Driver) drained(ctx context.Context) error {
	d.mu.Lock()
	want := d.begun + 1 // the one under way may already have passed the rows that matter
	for d.ended < want && d.busy() {
		changed := d.changed.Next()
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		d.mu.Lock()
	}
	d.mu.Unlock()
	return nil
}

// staleCopies is longer than the datapath keeps using copies of former flows.
const staleCopies = 2 * time.Second

// forget removes the tracked connections to backends that a service no longer has. Both
// bridges of a host share one connection table.
func (d *Driver) forget(before, now ofnet.Service) {
	gone := ofnet.GoneConnections(before, now)
	if len(gone) == 0 {
		return
	}
	d.bridges[ofnet.VXLAN].sw.Forget(gone...)
	d.forgets = append(d.forgets, forgetting{time.Now().Add(staleCopies), before})
}

// forgetting is a service whose former connections are to be removed again.
type forgetting struct {
	at     time.Time
	before ofnet.Service
}

// forgettings are sorted by time.
type forgettings []forgetting

// due fires when the first one is due.
func (f forgettings) due() <-chan time.Time {
	if len(f) == 0 {
		return nil
	}
	return time.After(time.Until(f[0].at))
}

// take removes and returns those that are due.
func (f *forgettings) take(now time.Time) (services []ofnet.Service) {
	for len(*f) > 0 && !(*f)[0].at.After(now) {
		services = append(services, (*f)[0].before)
		*f = (*f)[1:]
	}
	return services
}

// forgetAgain removes connections to former backends that have begun through stale copies
// of flows. Otherwise they would fail for as long as the client retries.
func (d *Driver) forgetAgain(before ofnet.Service) {
	d.mu.Lock()
	now := d.compiler.ServicesOf(before.VRF) // of all services, as another one may own the address by now
	d.mu.Unlock()
	d.bridges[ofnet.VXLAN].sw.Forget(ofnet.GoneConnections(before, now)...)
}

// announceChanged announces an endpoint that is new here or has changed.
func (d *Driver) announceChanged(id string) {
	d.mu.Lock()
	e, known := d.compiler.Endpoints[id]
	port := d.compiler.Ports[id].OpenFlow
	wanted := known && port != 0 && e.Local && e.Network.Encap == ofnet.VLAN && d.compiler.Global.FwdMode == "bridge"
	d.mu.Unlock()
	if !wanted {
		d.announcer.remove(id)
		return
	}
	d.announcer.set(id, announcement{mac: e.MAC, ipv4: e.IPv4, ipv6: e.IPv6, port: port, tag: e.VLAN()}, e.Group)
}

// warmUp resolves a new tunnel peer.
func (d *Driver) warmUp(key string) {
	addr, err := netip.ParseAddr(key)
	d.mu.Lock()
	wanted := err == nil && d.compiler.Tunnel && d.compiler.IsPeer(key)
	d.mu.Unlock()
	if wanted && !d.kernelBridge(VXLANBridge) {
		warmUp(d.cfg.VTEP, addr)
	}
}
