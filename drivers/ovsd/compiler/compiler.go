package compiler

import (
	"maps"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Compiler recomputes programs as their inputs change. It is not safe for concurrent
// use. Create it with New.
type Compiler struct {
	Inputs
	cfg        Config
	dependents [numKinds][]dependency // by what they depend on

	// What has to be computed. A pass goes through the kinds in order.
	dirty   [numKinds]map[string]struct{}
	markers [numKinds]func(key string) // add to dirty
	at      Kind
	queue   []string // of kind at

	// Counts of inputs.
	tenants map[string]int            // networks by tenant
	vlans   map[string]int            // those of them on the VLAN bridge
	members map[string]members        // endpoints by tenant
	rules   map[string]*ofnet.RuleSet // by tenant; none is empty
	audits  map[string]int            // rules in audit mode by tenant
	infra   map[string]int            // ids of this host's endpoints in infra networks
	peers   map[string]int            // other hosts by tunnel address

	// Facts, as of when they were computed.
	pipelines   map[ofnet.Encap]*ofnet.Pipeline
	settings    map[ofnet.Encap]ofnet.Settings
	modeErrs    map[ofnet.Encap]error
	tenantsHere map[string]bool
	moved       map[string]bool // tenants that MovedTenants has still to take
	moving      map[string]bool // those that it has taken last
	seen        map[string]bool // tenants
	ruled       map[string]bool // tenants
	peered      map[string]bool // tunnel addresses
	owners      ownerTable
	locations   locations
	groupTags   groupVLANs
	subjects    subjects
	setBridges  map[string]encaps

	subjectBridges map[string]encaps // by tenant

	fingerprints map[string]uint64 // of rule sets
	peerSums     map[string]uint64 // of policy peers, by tenant

	tenantOfVRF map[uint16]string
	setNumbers  numbers[string]
	frontends   numbers[frontendID]
	services    map[realisedService]ofnet.Service // with the last flows that were wanted
}

// members are how many endpoints a tenant has, and how many of them are on this host.
type members struct{ all, local int }

// Output is an owner's new programs for each bridge, or the key of a kind of observer to
// notify.
type Output struct {
	Kind Kind
	Key  string

	Owner string // of the programs; empty for observers
	Programs
	// The service before and after, if connections have to be removed from tracking.
	Before, Now *ofnet.Service
}

// Programs are those of one owner. An empty program means that the owner has none.
type Programs struct{ VLAN, VXLAN ofnet.Program }

// In returns the program for a bridge.
func (p *Programs) In(e ofnet.Encap) *ofnet.Program {
	if e == ofnet.VLAN {
		return &p.VLAN
	}
	return &p.VXLAN
}

// New makes a compiler with initial inputs; everything has to be computed.
func New(cfg Config, in Inputs) *Compiler { return newCompiler(cfg, in, dependencies) }

func newCompiler(cfg Config, in Inputs, table []dependency) *Compiler {
	c := &Compiler{
		cfg: cfg, tenants: map[string]int{}, vlans: map[string]int{}, members: map[string]members{}, tenantsHere: map[string]bool{}, moved: map[string]bool{}, rules: map[string]*ofnet.RuleSet{}, audits: map[string]int{}, infra: map[string]int{}, peers: map[string]int{},
		pipelines: map[ofnet.Encap]*ofnet.Pipeline{}, settings: map[ofnet.Encap]ofnet.Settings{}, modeErrs: map[ofnet.Encap]error{},
		seen: map[string]bool{}, ruled: map[string]bool{}, peered: map[string]bool{},
		owners: newOwnerTable(), locations: newLocations(), groupTags: newGroupVLANs(), subjects: newSubjects(), setBridges: map[string]encaps{}, subjectBridges: map[string]encaps{}, fingerprints: map[string]uint64{}, peerSums: map[string]uint64{},
		tenantOfVRF: map[uint16]string{}, setNumbers: newNumbers[string](), frontends: newNumbers[frontendID](), services: map[realisedService]ofnet.Service{},
	}
	for k := range c.markers {
		c.markers[k] = func(key string) {
			if c.dirty[k] == nil {
				c.dirty[k] = map[string]struct{}{}
			}
			c.dirty[k][key] = struct{}{}
		}
	}
	for _, d := range table {
		c.dependents[d.from] = append(c.dependents[d.from], d)
	}
	c.init()
	c.load(in)
	return c
}

// load declares inputs one by one.
func (c *Compiler) load(in Inputs) {
	c.LoadVRFs(in.VRFs)
	c.Apply(in.Global)
	if in.Cluster != nil {
		c.Apply(*in.Cluster)
	}
	applyAll(c, in.Networks)
	applyAll(c, in.Endpoints)
	applyAll(c, in.Rules)
	applyAll(c, in.Services)
	applyAll(c, in.RuleSets)
	applyAll(c, in.PolicyPeers)
	applyAll(c, in.EndpointPolicies)
	applyAll(c, in.Hosts)
	c.SetControlPorts(in.ControlPorts)
	replace(c, Bridge, c.Bridges, in.Bridges)
	c.SetPorts(in.Ports)
	c.SetUplinks(in.Uplinks)
	c.SetTunnel(in.Tunnel)
	if in.Synced {
		c.SetSynced()
	}
}

func applyAll[T drivers.Object](c *Compiler, rows map[string]T) {
	for _, o := range rows {
		c.Apply(o)
	}
}

// Compile returns the programs of all owners, by encapsulation of the bridge and owner.
func Compile(cfg Config, in Inputs) map[ofnet.Encap]map[string]ofnet.Program {
	all := map[ofnet.Encap]map[string]ofnet.Program{ofnet.VLAN: {}, ofnet.VXLAN: {}}
	c := New(cfg, in)
	for done := false; !done; {
		var out []Output
		out, done = c.Step(1 << 10)
		for _, o := range out {
			for e, programs := range all {
				if p := *o.In(e); !p.Empty() {
					programs[o.Owner] = p
				}
			}
		}
	}
	return all
}

// changed marks what depends on a row.
func (c *Compiler) changed(k Kind, key string) {
	for _, d := range c.dependents[k] {
		d.keys(c, key, c.markers[d.to])
	}
}

// Dirty reports whether there is something to compute.
func (c *Compiler) Dirty() bool {
	return len(c.queue) > 0 || slices.ContainsFunc(c.dirty[:], func(m map[string]struct{}) bool { return len(m) > 0 })
}

// Step computes up to n rows of a pass. When done is true, everything marked before the
// pass began has been computed.
func (c *Compiler) Step(n int) (out []Output, done bool) {
	for ; n > 0; n-- {
		if len(c.queue) > 0 && c.at == TenantFlows && c.dirtyBefore(TenantFlows) {
			c.startOver()
		}
		for len(c.queue) == 0 {
			if c.at == numKinds {
				c.at = 0
				return out, true
			}
			if len(c.dirty[c.at]) == 0 {
				c.at++
				continue
			}
			if c.at == TenantFlows && c.dirtyBefore(TenantFlows) {
				c.startOver()
				continue
			}
			c.queue = slices.Sorted(maps.Keys(c.dirty[c.at]))
			if len(c.queue) > 64 {
				c.dirty[c.at] = nil // a burst is over
			} else {
				clear(c.dirty[c.at])
			}
		}
		key := c.queue[0]
		c.queue = c.queue[1:]
		out = c.compute(c.at, key, out)
		if len(c.queue) == 0 {
			c.queue = nil
			c.at++
		}
	}
	return out, false
}

// dirtyBefore reports whether there is something to compute of a kind before k.
func (c *Compiler) dirtyBefore(k Kind) bool {
	return slices.ContainsFunc(c.dirty[:k], func(m map[string]struct{}) bool { return len(m) > 0 })
}

// startOver goes back to the first kind. New flows of a tenant have its connections
// re-evaluated against the rules of that moment, and this happens only once: changes made
// since the pass began must be in these rules.
func (c *Compiler) startOver() {
	for _, key := range c.queue {
		c.markers[c.at](key)
	}
	c.queue, c.at = nil, 0
}

// compute computes one row. A fact that has changed marks what depends on it.
func (c *Compiler) compute(k Kind, key string, out []Output) []Output {
	if fact := facts[k]; fact != nil {
		for _, other := range fact(c, key) {
			c.changed(k, other)
		}
		if k != Pipeline {
			return out
		}
	}
	if k == ServiceFlows {
		return append(out, c.compileService(key)...)
	}
	o := Output{Kind: k, Key: key}
	if p := programs[k]; p.compile != nil {
		o.Owner, o.Programs = p.owner+key, p.compile(c, key)
	}
	return append(out, o)
}

// everywhere compiles a program for each bridge that has a pipeline.
func (c *Compiler) everywhere(compile func(ofnet.Encap, *ofnet.Pipeline) ofnet.Program) (out Programs) {
	for e, p := range c.pipelines {
		*out.In(e) = compile(e, p)
	}
	return out
}

// in compiles a program for one bridge, if it has a pipeline.
func (c *Compiler) in(e ofnet.Encap, compile func(*ofnet.Pipeline) ofnet.Program) (out Programs) {
	if p := c.pipelines[e]; p != nil {
		*out.In(e) = compile(p)
	}
	return out
}

// Pipeline returns the pipeline of a bridge, or why it has none; nil and nil while the
// settings are unknown.
func (c *Compiler) Pipeline(e ofnet.Encap) (*ofnet.Pipeline, error) {
	return c.pipelines[e], c.modeErrs[e]
}
