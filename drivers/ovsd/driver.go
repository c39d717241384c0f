// Package ovsd realises networks and endpoints with Open vSwitch: bridges and ports
// through OVSDB, forwarding through the flow programs of package ofnet.
//
// The database is the memory of what exists on the host: a port carries, in its
// external_ids, the endpoint it belongs to, so an agent that starts finds everything
// its predecessor attached and touches none of it.
//
// Each bridge is a side of the driver, with a flow pipeline and a switch connection. What is declared (networks, endpoints, settings) and what
// the database reports (port numbers) meet in the flows of each object; the switch
// reconciler sees to it that the bridge has them.
package ovsd

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Driver implements drivers.Driver with Open vSwitch.
type Driver struct {
	cfg   Config
	db    *ovsdb.Client
	sides map[ofnet.Encap]*side

	numbers numbers
	cache   *cache
	host    *hostnet.Keeper
	pushes  *prometheus.HistogramVec

	mu        sync.Mutex
	global    drivers.Global
	networks  map[string]drivers.Network
	endpoints map[string]drivers.Endpoint
	ports     map[string]uint32 // OpenFlow port by endpoint id
	reach     hostReach
	uplinks   []ofnet.Uplink
	peers     map[netip.Addr]struct{} // tunnel addresses of the other hosts
	tunnelUp  bool                    // the tunnel port has its number
	control   controlPlane
	vrfs      vrfTable
	floods    floods
	announce  announcements
	rules     map[string]drivers.Rule
	ruleSets  map[string]*ofnet.RuleSet // by tenant; none is empty
	services  services
	guards    guards
	room      *dnsRoom // nil without a name server
	router    *router
	groupTags groupVLANs
	held      belongings    // of uplinks taken over; of those who make bridges alone
	complete  bool          // everything has been declared
	repair    chan struct{} // kicks keepBridges
	limits    chan struct{} // kicks keepLimits
	changed   signal.Signal // broadcast when endpoints or ports change
	started   bool          // bridges exist, rounds are counted
	startErr  error         // why not
}

// settingTimeout bounds noting a kernel setting.
const settingTimeout = 5 * time.Second

// side is one bridge.
type side struct {
	encap  ofnet.Encap
	bridge string
	sw     *ofnet.Switch
	round  uint16
	mtuNow atomic.Int64

	dnsPort string // name of the port that leads to the name server; empty without one

	pipeline *ofnet.Pipeline // nil while the mode is unknown or not supported
	modeErr  error
}

func (s *side) mtu() int { return int(s.mtuNow.Load()) }

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Ports     = (*Driver)(nil)
	_ drivers.Inspector = (*Driver)(nil)
)

// New makes a driver. It does nothing before Run.
func New(cfg Config) (*Driver, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, errs.Wrap(errs.Invalid, err)
	}
	d := &Driver{
		cfg: cfg, networks: map[string]drivers.Network{}, endpoints: map[string]drivers.Endpoint{},
		ports: map[string]uint32{}, reach: newHostReach(), vrfs: newVRFTable(), floods: newFloods(), announce: newAnnouncements(), rules: map[string]drivers.Rule{}, ruleSets: map[string]*ofnet.RuleSet{}, services: newServices(), guards: newEndpointPolicies(),
		pushes: newPushHistogram(), repair: make(chan struct{}, 1), limits: make(chan struct{}, 1),
		sides: map[ofnet.Encap]*side{}, router: newRouter(cfg), groupTags: newGroupVLANs(),
	}
	d.numbers.reserved = map[int]bool{}
	d.cache = newCache(d.cfg.runDir())
	d.host = hostnet.New(hostnet.Config{Plan: d.hostPlan, Note: d.noteSetting, Log: cfg.Log})
	d.db = ovsdb.New(ovsdb.Config{Target: cfg.OVSDB, Monitor: monitored(), OnChange: d.onChange, Log: cfg.Log})
	d.addSide(ofnet.VXLAN, VXLANBridge)
	d.addSide(ofnet.VLAN, VLANBridge)
	d.holdStale()
	return d, nil
}

func (d *Driver) addSide(encap ofnet.Encap, bridge string) {
	s := &side{encap: encap, bridge: bridge}
	took := d.pushes.WithLabelValues(bridge)
	s.sw = ofnet.NewSwitch(ofnet.SwitchConfig{
		Name: bridge, Target: d.cfg.mgmtTarget(bridge), Log: d.cfg.Log, DNS: d.query,
		Connected: d.wantLimits,
		Pushed:    func(_ int, t time.Duration) { took.Observe(t.Seconds()) },
	})
	d.sides[encap] = s
}

// measureMTU reads the MTU of the underlay, which may have changed since the last port.
func (d *Driver) measureMTU(s *side) int {
	mtu := 0
	if s.encap == ofnet.VXLAN {
		mtu = TunnelMTU(d.cfg.VTEP)
	} else {
		mtu = linkMTU(d.cfg.Uplinks)
	}
	s.mtuNow.Store(int64(mtu))
	return mtu
}

// Run works until ctx ends. Bridges, ports and flows stay.
func (d *Driver) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.db.Run(ctx) })
	g.Go(func() error {
		if err := d.start(ctx); err != nil {
			return err
		}
		inner, ctx := errgroup.WithContext(ctx)
		for _, s := range d.sides {
			inner.Go(func() error { return s.sw.Run(ctx) })
		}
		inner.Go(func() error { return d.keepBridges(ctx) })
		inner.Go(func() error { return d.keepLimits(ctx) })
		inner.Go(func() error { return d.runAnnouncements(ctx) })
		inner.Go(func() error { return d.serveStreams(ctx) })
		inner.Go(func() error { return d.router.speaker.Run(ctx) })
		inner.Go(func() error { return d.keepRouter(ctx) })
		inner.Go(func() error { return d.host.Run(ctx) })
		inner.Go(func() error { return d.keepTakeover(ctx) })
		return inner.Wait()
	})
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// start brings bridges and ports about, again and again until it holds.
func (d *Driver) start(ctx context.Context) error {
	again := retry.New(100*time.Millisecond, 5*time.Second)
	for {
		err := d.prepare(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.mu.Lock()
		said := d.startErr != nil && err != nil && d.startErr.Error() == err.Error()
		d.startErr = err
		d.mu.Unlock()
		if err == nil {
			return nil
		}
		if !said {
			d.cfg.Log.WithError(err).Warn("the switch is not ready; retrying")
		}
		if !again.Wait(ctx) {
			return ctx.Err()
		}
	}
}

func (d *Driver) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := d.db.Wait(ctx, func(v ovsdb.View) bool { return hasRoot(v) }); err != nil {
		return err
	}
	if err := d.ensureAll(ctx); err != nil {
		return err
	}
	for _, s := range d.sides {
		d.measureMTU(s)
		round, err := d.nextRound(ctx, s.bridge)
		if err != nil {
			return err
		}
		s.round = round
	}
	if err := d.openRoom(); err != nil {
		return err
	}
	if err := d.ensureDNSPorts(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.db.View(func(v ovsdb.View) { d.vrfs.load(v) })
	d.started = true
	d.readPorts()
	d.rebuild()
	return nil
}

func (d *Driver) ensureAll(ctx context.Context) error {
	for _, s := range d.sides {
		if err := d.ensureBridge(ctx, s.bridge); err != nil {
			return err
		}
	}
	if err := d.ensureTunnel(ctx); err != nil {
		return err
	}
	if err := d.ensureUplinks(ctx); err != nil {
		return err
	}
	// A port the host cannot have must not keep containers from theirs.
	err := d.ensureHostPorts(ctx)
	d.mu.Lock()
	if err != nil && (d.reach.err == nil || d.reach.err.Error() != err.Error()) {
		d.cfg.Log.WithError(err).Warn("the host lacks a port")
	}
	d.reach.err = err
	d.mu.Unlock()
	return nil
}

func hasRoot(v ovsdb.View) bool {
	found := false
	v.Each("Open_vSwitch", func(ovsdb.UUID, ovsdb.Row) { found = true })
	return found
}

// keepBridges repairs the bridges when somebody removes them or the database is
// replaced, and keeps the numbers of VRFs stored.
func (d *Driver) keepBridges(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.repair:
		}
		d.mu.Lock()
		ports, complete := d.wantedHostPorts(), d.complete
		d.mu.Unlock()
		whole := true
		if !d.db.View(func(v ovsdb.View) {
			whole = !hasRoot(v) || d.intact(v) && !staleHostPorts(ports, hostPorts(v), complete)
		}) {
			continue // the next connection brings a change
		}
		if whole && !d.vrfsUnsaved() && len(d.mistagged()) == 0 && len(d.trunkOps()) == 0 {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := d.ensureAll(attempt)
		if err == nil {
			err = d.ensureDNSPorts(attempt)
		}
		if err == nil {
			err = d.saveVRFs(attempt) // a bridge made anew has lost them
		}
		if err == nil {
			err = d.retag(attempt)
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		d.cfg.Log.WithError(err).Warn("cannot repair the bridges; retrying")
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			d.wantRepair()
		}
	}
}

func (d *Driver) wantRepair() {
	select {
	case d.repair <- struct{}{}:
	default:
	}
}

// intact reports whether everything the driver needs besides endpoints exists.
func (d *Driver) intact(v ovsdb.View) bool {
	for _, s := range d.sides {
		if _, _, ok := v.Find("Bridge", "name", s.bridge); !ok {
			return false
		}
		if _, _, ok := v.Find("Interface", "name", s.dnsPort); !ok && s.dnsPort != "" {
			return false
		}
	}
	if _, _, ok := v.Find("Interface", "name", patchToVLAN); !ok && len(d.held) > 0 {
		return false
	}
	_, _, ok := v.Find("Interface", "name", tunnelName)
	return ok
}

// onChange is told of every change in the database.
func (d *Driver) onChange(changes []ovsdb.Change) {
	d.wantRepair()
	if !slices.ContainsFunc(changes, func(c ovsdb.Change) bool { return c.Table == "Interface" || c.Table == "Port" }) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		d.readPorts()
	}
}

// readPorts takes the port numbers from the database and renews the flows of what
// they changed. The caller holds mu.
func (d *Driver) readPorts() {
	fresh, numbers := map[string]uint32{}, map[string]int{}
	var links []ofnet.Uplink
	tunnel := false
	d.db.View(func(v ovsdb.View) {
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			ids := row.Map("external_ids")
			n, ok := row.Int("ofport")
			tunnel = tunnel || row.String("name") == tunnelName && n > 0
			if ok && n > 0 && ids[ownerKey] == ownerMark && ids[endpointKey] != "" {
				fresh[ids[endpointKey]] = uint32(n)
				numbers[ids[endpointKey]], _ = portNumber(row.String("name"))
			}
		})
		links = uplinks(v)
	})
	old := d.ports
	d.ports, d.reach.numbers = fresh, numbers
	if tunnel && !d.tunnelUp { // neighbours are learnt only while there is a tunnel
		for p := range d.peers {
			d.warmUp(p)
		}
	}
	d.tunnelUp = tunnel
	for id := range old {
		if fresh[id] != old[id] {
			d.refreshEndpoint(id)
		}
	}
	for id := range fresh {
		if _, had := old[id]; !had {
			d.refreshEndpoint(id)
		}
	}
	for _, s := range d.sides {
		if e := s.hostEndpoint(); fresh[e] != old[e] {
			d.refreshHostPort(s)
		}
	}
	d.refreshUplinks(links)
	d.router.wake()
	d.broadcast()
}

func (d *Driver) broadcast() {
	d.changed.Broadcast()
}

// Realised waits until the switch forwards for an attached local endpoint.
func (d *Driver) Realised(ctx context.Context, endpointID string) error {
	for {
		d.mu.Lock()
		e, known := d.endpoints[endpointID]
		attached := d.ports[endpointID] != 0
		changed := d.changed.Next()
		s := d.sides[e.Network.Encap]
		var modeErr error
		if s != nil {
			modeErr = s.modeErr
		}
		d.mu.Unlock()
		if modeErr != nil {
			return errs.New(errs.Invalid, "endpoint %s: %w", endpointID, modeErr)
		}
		if known && attached && s != nil && d.tagged(endpointID) {
			if owners, ok := d.endpointPolicyOwners(endpointID); ok {
				if err := settled(ctx, s.sw, owners); err != nil {
					return err
				}
				if err := d.cache.current(ctx); err != nil {
					d.cfg.Log.WithError(err).Debug("the switch does not tell when its cache is current")
				}
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !known {
				return errs.New(errs.Timeout, "endpoint %s is not in the store yet: %w", endpointID, ctx.Err())
			}
			return errs.New(errs.Timeout, "endpoint %s has no port yet: %w", endpointID, ctx.Err())
		}
	}
}

// Ready returns nil when everything declared is in the switches, or what is missing.
func (d *Driver) Ready() error {
	if err := d.Serving(); err != nil {
		return err
	}
	for _, s := range d.sides {
		if err := s.sw.Ready(); err != nil {
			return fmt.Errorf("bridge %s: %w", s.bridge, err)
		}
	}
	return nil
}

// Serving returns nil while ports can be attached and detached, or what is in the way:
// changes that are on their way to the switches are not.
func (d *Driver) Serving() error {
	d.mu.Lock()
	started, startErr, global := d.started, d.startErr, d.global
	d.mu.Unlock()
	if err := d.db.Connected(); err != nil {
		return err
	}
	if !started {
		if startErr != nil {
			return startErr
		}
		return errs.New(errs.Unavailable, "bridges are being set up")
	}
	if global.FwdMode == "" {
		return errs.New(errs.Unavailable, "waiting for the global settings")
	}
	for _, s := range d.sides {
		if err := s.sw.Serving(); err != nil {
			return fmt.Errorf("bridge %s: %w", s.bridge, err)
		}
	}
	return nil
}
