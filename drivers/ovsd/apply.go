package ovsd

import (
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/ofnet"
)

// Apply implements drivers.Driver.
func (d *Driver) Apply(o drivers.Object) {
	if s, ok := o.(drivers.Speaker); ok {
		d.router.setSpeaker(&s.Config)
		return
	}
	d.change(func(c *compiler.Compiler) { c.Apply(o) })
}

// Delete implements drivers.Driver. Objects of which there is only one stay.
func (d *Driver) Delete(k drivers.Kind, id string) {
	if k == drivers.KindSpeaker {
		d.router.setSpeaker(nil)
		return
	}
	d.change(func(c *compiler.Compiler) { c.Delete(k, id) })
}

// holdStale keeps what earlier agents have installed for sources that have not synced yet.
func (d *Driver) holdStale() {
	for _, s := range d.bridges {
		for _, source := range d.cfg.Sources {
			switch source {
			case drivers.SourceServices:
				s.sw.HoldStaleServices()
			case drivers.SourcePolicies:
				s.sw.HoldStaleEndpointPolicies()
			}
		}
	}
}

// Synced implements drivers.Driver.
func (d *Driver) Synced(source drivers.Source) {
	if source == drivers.SourceStore {
		if d.router.speakerWanted() != nil { // routes to outside networks come from BGP neighbors
			d.bridges[ofnet.VLAN].sw.HoldStaleRoutes()
		}
		d.change((*compiler.Compiler).SetSynced)
	}
	// What the source has declared so far must reach the switches first.
	d.mu.Lock()
	d.sweeps = append(d.sweeps, source)
	d.mu.Unlock()
	d.wake()
}

// sweep lets the switches remove what a source has not declared. In the VLAN bridge the
// router does it for the store, as some of what the store declares is the router's.
func (d *Driver) sweep(source drivers.Source) {
	for encap, s := range d.bridges {
		switch source {
		case drivers.SourceStore:
			if encap != ofnet.VLAN {
				s.sw.InitialSyncDone()
			}
		case drivers.SourceServices:
			s.sw.SweepStaleServices()
		case drivers.SourcePolicies:
			s.sw.SweepStaleEndpointPolicies()
		}
	}
}

// AddControlPorts adds ports of other daemons to the ports of the control plane. They stay
// when these daemons go, as they may come back.
func (d *Driver) AddControlPorts(ports ...ofnet.PortRange) {
	d.change(func(c *compiler.Compiler) {
		all := slices.Clone(c.ControlPorts)
		for _, p := range ports {
			if !slices.ContainsFunc(slices.Concat(d.cfg.ControlPorts, all), func(r ofnet.PortRange) bool {
				return r.Proto == p.Proto && r.Low <= p.Low && p.High <= r.High
			}) {
				all = append(all, p)
			}
		}
		c.SetControlPorts(all)
	})
}

// change changes inputs and wakes the goroutine that recomputes what depends on them.
func (d *Driver) change(f func(*compiler.Compiler)) {
	d.mu.Lock()
	f(d.compiler)
	dirty := d.compiler.Dirty()
	d.mu.Unlock()
	if dirty {
		d.wake()
	}
}
