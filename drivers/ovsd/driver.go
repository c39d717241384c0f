package ovsd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contiv/netplugin/drivers/ovsd/compiler"

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

// Driver implements drivers.Driver, drivers.Ports and drivers.Inspector with Open vSwitch.
type Driver struct {
	cfg     Config
	db      *ovsdb.Client
	bridges map[ofnet.Encap]*bridge
	numbers numbers

	// Components beside the compiler, each with state of its own.
	cache     *cache
	host      *hostnet.Keeper
	limits    *ctLimits
	announcer *announcer
	router    *router
	dns       *nameService
	takeover  *takeover
	vrfs      storedVRFs
	pushes    *prometheus.HistogramVec
	forgets   forgettings   // used by drain only
	repair    chan struct{} // wakes keepBridges
	kick      chan struct{} // wakes drain

	mu           sync.Mutex
	compiler     *compiler.Compiler
	begun, ended int              // passes of drain
	tenants      map[string]bool  // whose flows the switches have had as a whole, by tenants that are needed here
	sweeps       []drivers.Source // to sweep when a pass has ended
	whole        bool             // everything that the store has declared has been compiled and passed on once
	changed      signal.Signal    // after a pass, and when ports change
	status       status
}

// status is the result of the driver's start, and of creating the host's own ports.
type status struct {
	started bool  // bridges exist, and rounds are counted
	err     error // why it has not started
	hostErr error // why a port of the host is missing
}

// settingTimeout limits the time to record a kernel setting.
const settingTimeout = 5 * time.Second

// bridge is one bridge, with its switch connection.
type bridge struct {
	encap  ofnet.Encap
	name   string
	sw     *ofnet.Switch
	round  uint16
	mtuNow atomic.Int64

	dnsPort string // name of the port into the DNS namespace; empty without one
}

func (b *bridge) mtu() int { return int(b.mtuNow.Load()) }

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Ports     = (*Driver)(nil)
	_ drivers.Inspector = (*Driver)(nil)
)

// New creates a driver. It does nothing before Run.
func New(cfg Config) (*Driver, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, errs.Wrap(errs.Invalid, err)
	}
	d := &Driver{
		cfg: cfg, bridges: map[ofnet.Encap]*bridge{}, numbers: newNumbers(), cache: newCache(cfg.runDir()), pushes: newPushHistogram(),
		announcer: newAnnouncer(), router: newRouter(cfg), takeover: &takeover{}, dns: &nameService{},
		repair: make(chan struct{}, 1), kick: make(chan struct{}, 1), tenants: map[string]bool{},
	}
	d.compiler = compiler.New(compiler.Config{
		HostLabel: cfg.HostLabel, VTEP: cfg.VTEP, CtrlIP: cfg.CtrlIP, ControlPorts: cfg.ControlPorts, TunnelPorts: cfg.TunnelPorts,
		AllowSpoofing: cfg.AllowSpoofing, EndpointPolicies: cfg.EndpointPolicies, ConnectionRate: cfg.ConnectionRate, DNS: d.dnsSettings(), FlowLog: cfg.FlowLog,
		TunnelPort: tunnelOFPort,
	}, compiler.Inputs{})
	d.host = hostnet.New(hostnet.Config{Plan: d.hostPlan, Note: d.noteSetting, Log: cfg.Log})
	d.db = ovsdb.New(ovsdb.Config{Target: cfg.OVSDB, Monitor: monitored(), OnChange: d.onChange, Log: cfg.Log})
	d.limits = &ctLimits{cfg: cfg, kick: make(chan struct{}, 1), vrfs: d.vrfNumbers, kernel: func() bool { return d.kernelBridge(VXLANBridge) }}
	d.addBridge(ofnet.VXLAN, VXLANBridge)
	d.addBridge(ofnet.VLAN, VLANBridge)
	d.holdStale()
	return d, nil
}

func (d *Driver) addBridge(encap ofnet.Encap, name string) {
	took := d.pushes.WithLabelValues(name)
	var denied func(*ofnet.DeniedPacket)
	if d.cfg.Denied != nil {
		denied = d.denied(encap)
	}
	d.bridges[encap] = &bridge{encap: encap, name: name, sw: ofnet.NewSwitch(ofnet.SwitchConfig{
		Name: name, Target: d.cfg.mgmtTarget(name), Log: d.cfg.Log, DNS: d.query, Denied: denied,
		Connected: d.limits.wake,
		Pushed:    func(_ int, t time.Duration) { took.Observe(t.Seconds()) },
	})}
}

// pipeline returns a bridge's; nil while the mode is unknown or unsupported. The caller
// holds mu.
func (d *Driver) pipeline(s *bridge) *ofnet.Pipeline {
	p, _ := d.compiler.Pipeline(s.encap)
	return p
}

// measureMTU reads the MTU of the underlay, which may change between ports.
func (d *Driver) measureMTU(s *bridge) int {
	mtu := 0
	if s.encap == ofnet.VXLAN {
		mtu = TunnelMTU(d.cfg.VTEP)
	} else {
		mtu = linkMTU(d.cfg.Uplinks)
	}
	s.mtuNow.Store(int64(mtu))
	return mtu
}

// Run runs the driver until ctx ends. Bridges, ports and flows stay.
func (d *Driver) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.db.Run(ctx) })
	g.Go(func() error {
		if err := d.start(ctx); err != nil {
			return err
		}
		inner, ctx := errgroup.WithContext(ctx)
		for _, s := range d.bridges {
			inner.Go(func() error { return s.sw.Run(ctx) })
		}
		inner.Go(func() error { return d.keepBridges(ctx) })
		inner.Go(func() error { return d.drain(ctx) })
		inner.Go(func() error { return d.limits.run(ctx) })
		inner.Go(func() error { return d.announcer.run(ctx, d.bridges[ofnet.VLAN].sw, d.cfg.Log) })
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

// start creates bridges and ports, and retries until it succeeds.
func (d *Driver) start(ctx context.Context) error {
	again := retry.New(100*time.Millisecond, 5*time.Second)
	for {
		err := d.prepare(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.mu.Lock()
		said := d.status.err != nil && err != nil && d.status.err.Error() == err.Error()
		d.status.err = err
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
	for _, s := range d.bridges {
		d.measureMTU(s)
		round, err := d.nextRound(ctx, s.name)
		if err != nil {
			return err
		}
		s.round = round
	}
	if err := d.openNameService(); err != nil {
		return err
	}
	if err := d.ensureDNSPorts(ctx); err != nil {
		return err
	}
	kernel := map[ofnet.Encap]bool{}
	for encap, s := range d.bridges {
		kernel[encap] = d.kernelBridge(s.name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vrfs = d.loadVRFs()
	d.compiler.LoadVRFs(d.vrfs.numbers)
	for encap, s := range d.bridges {
		d.compiler.SetBridge(encap, compiler.BridgeState{Round: s.round, Kernel: kernel[encap]})
	}
	d.status.started = true
	d.readPorts()
	d.wake()
	return nil
}

// kernelBridge reports whether a bridge uses the kernel's datapath.
func (d *Driver) kernelBridge(name string) bool {
	_, row, _ := d.find("Bridge", "name", name)
	return row.String("datapath_type") != "netdev"
}

func (d *Driver) ensureAll(ctx context.Context) error {
	for _, s := range d.bridges {
		if err := d.ensureBridge(ctx, s.name); err != nil {
			return err
		}
	}
	if err := d.ensureTunnel(ctx); err != nil {
		return err
	}
	if err := d.ensureUplinks(ctx); err != nil {
		return err
	}
	// A missing port of the host must not keep containers from getting theirs.
	err := d.ensureHostPorts(ctx)
	d.mu.Lock()
	if err != nil && (d.status.hostErr == nil || d.status.hostErr.Error() != err.Error()) {
		d.cfg.Log.WithError(err).Warn("the host lacks a port")
	}
	d.status.hostErr = err
	d.mu.Unlock()
	return nil
}

func hasRoot(v ovsdb.View) bool {
	found := false
	v.Each("Open_vSwitch", func(ovsdb.UUID, ovsdb.Row) { found = true })
	return found
}

// keepBridges repairs the bridges when they are removed or the database is replaced, and
// stores the numbers of VRFs.
func (d *Driver) keepBridges(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.repair:
		}
		d.mu.Lock()
		ports, complete := d.wantedHostPorts(), d.compiler.Synced
		d.mu.Unlock()
		whole := true
		if !d.db.View(func(v ovsdb.View) {
			whole = !hasRoot(v) || d.intact(v) && !staleHostPorts(ports, hostPorts(v), complete)
		}) {
			continue // the next connection triggers a change
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
			err = d.saveVRFs(attempt) // a bridge that was recreated has lost them
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

// intact reports whether everything except endpoints exists.
func (d *Driver) intact(v ovsdb.View) bool {
	for _, s := range d.bridges {
		if _, _, ok := v.Find("Bridge", "name", s.name); !ok {
			return false
		}
		if _, _, ok := v.Find("Interface", "name", s.dnsPort); !ok && s.dnsPort != "" {
			return false
		}
	}
	if _, _, ok := v.Find("Interface", "name", patchToVLAN); !ok && d.takeover.holds() {
		return false
	}
	_, _, ok := v.Find("Interface", "name", tunnelName)
	return ok
}

// onChange handles every change of the database.
func (d *Driver) onChange(changes []ovsdb.Change) {
	d.wantRepair()
	if !slices.ContainsFunc(changes, func(c ovsdb.Change) bool { return c.Table == "Interface" || c.Table == "Port" }) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.started {
		d.readPorts()
	}
}

// readPorts reads the port numbers from the database. The caller holds mu.
func (d *Driver) readPorts() {
	ports := map[string]compiler.PortNumber{}
	var links []ofnet.Uplink
	tunnel := false
	d.db.View(func(v ovsdb.View) {
		v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
			ids := row.Map("external_ids")
			n, ok := row.Int("ofport")
			tunnel = tunnel || row.String("name") == tunnelName && n > 0
			if ok && n > 0 && ids[ownerKey] == ownerMark && ids[endpointKey] != "" {
				number, _ := portNumber(row.String("name"))
				ports[ids[endpointKey]] = compiler.PortNumber{OpenFlow: uint32(n), Name: number}
			}
		})
		links = uplinks(v)
	})
	if recovered(d.uplinks(), links) {
		// More than once: the physical switch may first have to decide whether to
		// forward (IEEE 802.1D, 802.1AX).
		d.announcer.announce(0, askedTimes)
	}
	d.compiler.SetPorts(ports)
	byName := make(map[string]ofnet.Uplink, len(links))
	for _, u := range links {
		byName[u.Name] = u
	}
	d.compiler.SetUplinks(byName)
	d.compiler.SetTunnel(tunnel)
	if d.compiler.Dirty() {
		d.wake()
	}
	d.changed.Broadcast()
}

// Ready returns nil when everything declared is in the switches, or else what is missing.
func (d *Driver) Ready() error {
	if err := d.Serving(); err != nil {
		return err
	}
	d.mu.Lock()
	busy := d.busy()
	d.mu.Unlock()
	if busy {
		return errs.New(errs.Unavailable, "changes are still to be compiled")
	}
	for _, s := range d.bridges {
		if err := s.sw.Ready(); err != nil {
			return fmt.Errorf("bridge %s: %w", s.name, err)
		}
	}
	return nil
}

// Serving returns nil while ports can be attached and detached, or else why not. Changes
// that are still on their way to the switches do not matter.
func (d *Driver) Serving() error {
	d.mu.Lock()
	status, global := d.status, d.compiler.Global
	d.mu.Unlock()
	if err := d.db.Connected(); err != nil {
		return err
	}
	if !status.started {
		if status.err != nil {
			return status.err
		}
		return errs.New(errs.Unavailable, "bridges are being set up")
	}
	if global.FwdMode == "" {
		return errs.New(errs.Unavailable, "waiting for the global settings")
	}
	for _, s := range d.bridges {
		if err := s.sw.Serving(); err != nil {
			return fmt.Errorf("bridge %s: %w", s.name, err)
		}
	}
	return nil
}
