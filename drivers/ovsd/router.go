package ovsd

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/drivers/ovsd/nexthop"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
)

// routerPort is the host's interface on the link beyond its uplinks, where the routers are.
const routerPort = "inb01"

// router manages the host as a BGP router: the port, the BGP speaker on it, and the flows
// of the routes that the speaker learns. One goroutine, keepRouter, does all the work.
type router struct {
	speaker *bgp.Speaker
	kick    chan struct{}

	mu     sync.Mutex
	wanted *bgp.Config // declared; nil for none
	err    error       // why it is not as wanted
	told   string      // the last error that was logged

	swept   bool      // the bridge may remove what is not wanted; used by keepRouter only, like the following
	active  bool      // a speaker was configured
	leaving time.Time // when the speaker stopped being wanted

	flows *delta.Map[string, routerFlows] // by owner in the switch; used by keepRouter only
}

// routerFlows is what one owner has in the switch: exactly one of the three.
type routerFlows struct {
	pipeline  *ofnet.Pipeline
	port      uint32 // of routerPort
	addrs     [2]netip.Addr
	neighbors string // of the port, as neighborText encodes them
	route     ofnet.Route
	hops      uint32
	macs      string // of the next hops, six bytes each
}

func newRouter(cfg Config) *router {
	r := &router{kick: make(chan struct{}, 1), flows: delta.NewComparable[string, routerFlows]()}
	r.speaker = bgp.New(bgp.Options{Log: cfg.Log, OnChange: r.wake})
	return r
}

func (r *router) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

func (r *router) setSpeaker(c *bgp.Config) {
	r.mu.Lock()
	r.wanted = c
	r.mu.Unlock()
	r.wake()
}

func (r *router) speakerWanted() *bgp.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted
}

// note records why BGP is not as wanted, and reports whether that has changed.
func (r *router) note(err error) (news bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	news = r.told != text
	r.err, r.told = err, text
	return news
}

// InspectBGP returns the state of the BGP speaker. Unavailable: there is none, or not yet.
func (d *Driver) InspectBGP(ctx context.Context) (bgp.State, error) {
	d.router.mu.Lock()
	err := d.router.err
	d.router.mu.Unlock()
	if err != nil {
		return bgp.State{}, err
	}
	return d.router.speaker.Inspect(ctx)
}

const (
	hopRefresh  = 20 * time.Second // between checks of next hops that are known
	hopAskAgain = time.Second      // between requests for those that are not
	lastWords   = time.Second      // how long the port stays after the speaker has stopped
)

// keepRouter makes a pass whenever something may have changed.
func (d *Driver) keepRouter(ctx context.Context) error {
	links, err := nexthop.Watch(ctx, routerPort)
	if err != nil {
		return err
	}
	refresh := time.NewTicker(hopRefresh)
	defer refresh.Stop()
	ask := true
	for {
		w := d.routerInput()
		open, err := d.routerPass(ctx, w, ask)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.synced && !d.router.swept { // the router's own flows have been declared, too
			d.bridges[ofnet.VLAN].sw.InitialSyncDone()
			d.router.swept = true
		}
		if d.router.note(err) && err != nil {
			d.cfg.Log.WithError(err).Warn("cannot bring BGP to its configuration; retrying in 1s")
		}
		ask = false
		var again <-chan time.Time
		if open || err != nil {
			again = time.After(hopAskAgain)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.router.kick:
		case <-links:
		case <-again:
			ask = true
		case <-refresh.C:
			ask = true
		}
	}
}

// routerInput is the input of a pass.
type routerInput struct {
	config   *bgp.Config // nil for none
	err      error       // why there is none although one is declared
	synced   bool
	pipeline *ofnet.Pipeline
	addrs    []netip.Addr // of the containers here
}

func (d *Driver) routerInput() routerInput {
	config := d.router.speakerWanted()
	d.mu.Lock()
	defer d.mu.Unlock()
	w := routerInput{config: config, synced: d.whole, pipeline: d.pipeline(d.bridges[ofnet.VLAN])}
	if w.config == nil || w.pipeline == nil {
		w.config = nil
		return w
	}
	switch {
	case d.compiler.Global.FwdMode != "routing":
		w.err = errs.New(errs.Invalid, "BGP needs forwarding mode routing, it is %q", d.compiler.Global.FwdMode)
	case len(d.cfg.Uplinks) == 0:
		w.err = errs.New(errs.Invalid, "Unable to start protocol server without uplink: start netplugin with --vlan-uplinks")
	default:
		w.err = w.config.Validate()
	}
	if w.err != nil {
		w.config = nil
		return w
	}
	for id, e := range d.compiler.Endpoints {
		if e.Local && e.Network.Encap == ofnet.VLAN && d.compiler.Ports[id].OpenFlow != 0 {
			w.addrs = append(w.addrs, compiler.AddrsOf(e)...)
		}
	}
	return w
}

// routerPass updates port, speaker and flows. open reports that a next hop is not resolved
// yet; ask allows it to solicit next hops.
func (d *Driver) routerPass(ctx context.Context, w routerInput, ask bool) (open bool, err error) {
	side := d.bridges[ofnet.VLAN]
	if w.config == nil {
		if !w.synced {
			return false, w.err // it may still be declared
		}
		_ = d.router.speaker.Configure(nil) // removing the speaker cannot fail
		if d.router.leave() {
			return true, w.err
		}
		d.setRouterFlows(nil)
		side.sw.SweepStaleRoutes()
		err := d.removeRouterPort(ctx)
		return false, cmp.Or(w.err, err)
	}
	port, link, err := d.ensureRouterPort(ctx, *w.config)
	if err != nil {
		return false, err
	}
	flows := map[string]routerFlows{"router": {
		pipeline: w.pipeline, port: port, neighbors: neighborText(w.config.Neighbors),
		addrs: [2]netip.Addr{w.config.Router.Addr(), w.config.Router6.Addr()},
	}}
	settled := d.router.speaker.Settled()
	routes := d.router.speaker.Routes()
	macs, err := nexthop.MACs(link)
	if err != nil {
		return false, err
	}
	for _, n := range w.config.Neighbors { // they are on the link: that is a route, too
		if n.Addr.Is4() || !n.Addr.IsLinkLocalUnicast() {
			routes = append(routes[:len(routes):len(routes)], bgp.Route{Prefix: netip.PrefixFrom(n.Addr, n.Addr.BitLen()), Hops: []netip.Addr{n.Addr}})
		}
	}
	next, unknown := routeFlows(w.pipeline, routes, macs)
	maps.Copy(flows, next)
	for a := range unknown {
		nexthop.Solicit(link, a)
	}
	if ask {
		askFor(link, routes, w.config.Neighbors)
	}
	d.setRouterFlows(flows)
	d.router.active, d.router.leaving = true, time.Time{}
	if w.synced {
		d.router.speaker.Announce(w.addrs)
		if err := d.router.speaker.Configure(w.config); err != nil {
			return false, err
		}
		if settled {
			side.sw.SweepStaleRoutes()
		}
	}
	return len(unknown) > 0, nil
}

// routeFlows returns the flows of routes, by owner. A route uses those of its next hops
// that are resolved, and is left out while none is. unknown are the others.
func routeFlows(p *ofnet.Pipeline, routes []bgp.Route, macs map[netip.Addr]ofnet.MAC) (flows map[string]routerFlows, unknown map[netip.Addr]bool) {
	flows, unknown = map[string]routerFlows{}, map[netip.Addr]bool{}
	for _, r := range routes {
		hops, missing := resolved(r.Hops, macs)
		for _, a := range missing {
			unknown[a] = true
		}
		if len(hops) == 0 {
			continue
		}
		id := ofnet.HopSetID(hops)
		flows["hops/"+hopName(hops)] = routerFlows{pipeline: p, hops: id, macs: macText(hops, macs)}
		flows["route/"+r.Prefix.String()] = routerFlows{pipeline: p, route: ofnet.Route{Prefix: r.Prefix, Hops: id}}
	}
	return flows, unknown
}

// resolved divides next hops into those whose MAC is known and others.
func resolved(hops []netip.Addr, macs map[netip.Addr]ofnet.MAC) (known, missing []netip.Addr) {
	for _, a := range hops {
		if _, ok := macs[a]; ok {
			known = append(known, a)
		} else {
			missing = append(missing, a)
		}
	}
	return known, missing
}

func hopName(hops []netip.Addr) string {
	var b []byte
	for _, a := range hops {
		b = append(a.AppendTo(b), ' ')
	}
	return string(b)
}

func macText(hops []netip.Addr, macs map[netip.Addr]ofnet.MAC) string {
	var b []byte
	for _, a := range hops {
		m := macs[a]
		b = append(b, m[:]...)
	}
	return string(b)
}

// neighborText and asNeighbors convert neighbors to a comparable string and back: the
// addresses, with a "!" before those with TTL security.
func neighborText(neighbors []bgp.Neighbor) string {
	var b []byte
	for _, n := range neighbors {
		if n.TTLSecurity {
			b = append(b, '!')
		}
		b = append(n.Addr.AppendTo(b), ' ')
	}
	return string(b)
}

func asNeighbors(text string) (neighbors []ofnet.BGPNeighbor) {
	for _, f := range strings.Fields(text) {
		addr, err := netip.ParseAddr(strings.TrimPrefix(f, "!"))
		if err == nil { // written by neighborText
			neighbors = append(neighbors, ofnet.BGPNeighbor{Addr: addr, TTLSecurity: f[0] == '!'})
		}
	}
	return neighbors
}

// leave reports whether the port must stay for the speaker's last messages: without these,
// neighbors keep the routes until their hold time expires.
func (r *router) leave() bool {
	if !r.active {
		return false
	}
	if r.leaving.IsZero() {
		r.leaving = time.Now()
	}
	if time.Since(r.leaving) < lastWords {
		return true
	}
	r.active, r.leaving = false, time.Time{}
	return false
}

// setRouterFlows sends the switch the difference from what it was sent last.
func (d *Driver) setRouterFlows(want map[string]routerFlows) {
	sw := d.bridges[ofnet.VLAN].sw
	d.router.flows.ReplaceDesired(want)
	for c := range d.router.flows.Pending() {
		if c.Op == delta.Remove {
			sw.Remove(c.Key)
		} else {
			sw.Set(c.Key, c.Want.program())
		}
		d.router.flows.Applied(c)
	}
}

func (f routerFlows) program() ofnet.Program {
	switch {
	case f.port != 0:
		addrs := slices.DeleteFunc(slices.Clone(f.addrs[:]), func(a netip.Addr) bool { return !a.IsValid() })
		return f.pipeline.Program(ofnet.RouterPort{Port: f.port, Addrs: addrs, Neighbors: asNeighbors(f.neighbors), BGP: bgp.Port})
	case f.hops != 0:
		set := ofnet.HopSet{ID: f.hops}
		for mac := range slices.Chunk([]byte(f.macs), 6) {
			set.MACs = append(set.MACs, ofnet.MAC(mac))
		}
		return f.pipeline.Program(set)
	}
	return f.pipeline.Program(f.route)
}

// askFor has the host resolve next hops and neighbors, or verify them.
func askFor(link int, routes []bgp.Route, neighbors []bgp.Neighbor) {
	all := map[netip.Addr]bool{}
	for _, n := range neighbors {
		all[n.Addr] = true
	}
	for _, r := range routes {
		for _, a := range r.Hops {
			all[a] = true
		}
	}
	for a := range all {
		nexthop.Solicit(link, a)
	}
}
