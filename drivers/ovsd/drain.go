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

// atOnce is how many rows are computed under the driver's lock.
const atOnce = 256

// drain computes what has changed, and hands it to the switches and to those who look at
// it, until ctx ends. Nobody else gives the switches what the compiler makes.
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

// pass computes everything that is marked. Owners get their new programs before others
// lose theirs: what refers to something goes before it does. Rules and policies go before
// the flows that have connections judged again.
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
				gone.carryOut(ofPolicies) // or connections would be judged by them once more, for the last time
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
	if slices.Contains(sweeps, drivers.SourceStore) {
		d.whole = true // only now may the router and the host's plan take away what a predecessor has left
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

// tell tells who looks at it that something has changed.
func (d *Driver) tell(k compiler.Kind, key string) {
	switch k {
	case compiler.Pipeline:
		d.learn()
	case compiler.Announcement:
		d.announceChanged(key)
	case compiler.Neighbour:
		d.warmUp(key)
	case compiler.BGP:
		d.router.wake()
	case compiler.HostPlan:
		d.host.Kick()
	case compiler.Ports:
		d.wantRepair()
	}
}

// learn says in which tables the bridges learn flows themselves.
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

// busy reports whether something has still to be handed over. The caller holds mu.
func (d *Driver) busy() bool {
	return d.compiler.Dirty() || len(d.sweeps) > 0 || d.ended < d.begun
}

// drained waits until all changes made before the call have been handed to the switches.
func (d *Driver) drained(ctx context.Context) error {
	d.mu.Lock()
	want := d.begun + 1 // one that has begun may have passed what matters
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

// staleCopies is longer than the datapath goes on with copies of former flows.
const staleCopies = 2 * time.Second

// forget has connections forgotten to providers that a service has no more. Both bridges
// of a host share one connection table.
func (d *Driver) forget(before, now ofnet.Service) {
	gone := ofnet.GoneConnections(before, now)
	if len(gone) == 0 {
		return
	}
	d.bridges[ofnet.VXLAN].sw.Forget(gone...)
	d.forgets = append(d.forgets, forgetting{time.Now().Add(staleCopies), before})
}

// forgetting is a service whose former connections are to be forgotten again.
type forgetting struct {
	at     time.Time
	before ofnet.Service
}

// forgettings are in the order of their times.
type forgettings []forgetting

// due tells when the first one is.
func (f forgettings) due() <-chan time.Time {
	if len(f) == 0 {
		return nil
	}
	return time.After(time.Until(f[0].at))
}

// take removes those that are due.
func (f *forgettings) take(now time.Time) (services []ofnet.Service) {
	for len(*f) > 0 && !(*f)[0].at.After(now) {
		services = append(services, (*f)[0].before)
		*f = (*f)[1:]
	}
	return services
}

// forgetAgain forgets connections to what a service was that have begun by copies of
// former flows. They would lead nowhere for as long as the client goes on trying.
func (d *Driver) forgetAgain(before ofnet.Service) {
	d.mu.Lock()
	now := d.compiler.ServicesOf(before.VRF) // of all services, as another may lead there by now
	d.mu.Unlock()
	d.bridges[ofnet.VXLAN].sw.Forget(ofnet.GoneConnections(before, now)...)
}

// announceChanged has an endpoint announced if it is new here or has changed.
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

// warmUp is for a peer that the tunnel leads to.
func (d *Driver) warmUp(key string) {
	addr, err := netip.ParseAddr(key)
	d.mu.Lock()
	wanted := err == nil && d.compiler.Tunnel && d.compiler.IsPeer(key)
	d.mu.Unlock()
	if wanted && !d.kernelBridge(VXLANBridge) {
		warmUp(d.cfg.VTEP, addr)
	}
}
