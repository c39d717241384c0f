package ofnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/test/eventually"
)

// agreement is an agent's view of a bridge that changes at random, also by itself, and the
// compiled programs by owner.
type agreement struct {
	t        *testing.T
	sw       *ovstest.Switch
	settings Settings
	rng      *rand.Rand
	nets     []Network
	p        *Pipeline
	programs map[string]Program
	objects  map[string]func(*Pipeline) Program // what the programs are made from

	s    *Switch
	stop func()

	mu      sync.Mutex
	channel Channel // the one in use
}

// TestAgreement: after 1,000 random changes of objects, with restarts of the agent and the
// switch and broken connections in between, the bridge has exactly what the objects compile
// to: flows, groups and meters.
func TestAgreement(t *testing.T) {
	sw := ovstest.Start(t)
	for i, set := range []Settings{
		{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, DNS: DNSSettings{Rate: 100, Port: testDNSPort}},
		{Encap: VXLAN, TunnelPort: testTunnelPort},
		{Encap: VLAN, Routing: true, HostMAC: MAC{2, 3, 0, 0, 0, 1}},
		{Encap: VLAN},
	} {
		set.Round = 1
		p := newPipeline(t, set)
		t.Run(p.Mode().String(), func(t *testing.T) {
			sw.AddBridge(p.Mode().String())
			a := &agreement{t: t, sw: sw, settings: set, rng: rand.New(rand.NewPCG(1, uint64(i))), p: p, objects: map[string]func(*Pipeline) Program{}}
			for n := range 3 {
				a.nets = append(a.nets, Network{
					ID: fmt.Sprintf("n%d", n), Encap: set.Encap, VRF: uint16(1 + n%2), Tag: uint16(100 + n), VNI: uint32(10000 + n),
					Gateway4: netip.AddrFrom4([4]byte{10, 1, byte(n), 254}), Gateway6: addr(fmt.Sprintf("2001:db8:%d::fe", n)),
				})
			}
			a.begin()
			for n := 1; n <= 1000; n++ {
				a.change()
				switch {
				case n%97 == 0:
					a.breakChannel()
				case n%211 == 0:
					a.restart()
				case n == 500:
					sw.Restart(9)
				case n%250 == 0:
					a.check()
				case n%10 == 0: // or most changes would have no effect on the bridge
					a.flush()
				}
			}
			a.check()
			a.restart()
			contested := a.check()
			if sent := a.s.Status().Sent; sent > contested {
				t.Errorf("an agent that finds everything in place sends %d changes, of which %d decide between owners", sent, contested)
			}
		})
	}
}

// begin starts an agent that declares all objects again.
func (a *agreement) begin() {
	p := newPipeline(a.t, a.settings)
	a.p, a.programs = p, map[string]Program{"fixed": p.Program(Base{})}
	a.s = NewSwitch(SwitchConfig{Name: p.Mode().String(), Target: a.sw.Target(p.Mode().String()), Log: quiet(), Dial: func(ctx context.Context, target string) (Channel, error) {
		ch, err := agentParts{counts: &packetIns{}}.dial(ctx, target)
		a.mu.Lock()
		a.channel = ch
		a.mu.Unlock()
		return ch, err
	}})
	a.s.SetLearned(p.Learned()...)
	for owner, compile := range a.objects {
		a.programs[owner] = compile(p)
	}
	for owner, program := range a.programs {
		a.s.Set(owner, program)
	}
	a.s.InitialSyncDone()
	a.stop = startSwitch(a.t, a.s)
}

// restart replaces the agent in the middle of its work.
func (a *agreement) restart() {
	a.stop()
	a.settings.Round++
	a.begin()
}

func (a *agreement) breakChannel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.channel != nil {
		_ = a.channel.Close()
	}
}

// change creates, changes or removes an object. Every third change removes one.
func (a *agreement) change() {
	owner, compile := a.object()
	if a.rng.IntN(3) == 0 {
		delete(a.objects, owner)
		delete(a.programs, owner)
		a.s.Remove(owner)
		return
	}
	a.objects[owner] = compile
	a.programs[owner] = compile(a.p)
	a.s.Set(owner, a.programs[owner])
}

// object is a random object with random values.
func (a *agreement) object() (string, func(*Pipeline) Program) {
	r, n := a.rng, a.nets[a.rng.IntN(len(a.nets))]
	i := r.IntN(12)
	switch r.IntN(12) {
	case 11:
		control := ControlPlane{Ports: []PortRange{{of.ProtoTCP, uint16(1 + r.IntN(9)), 9}}, Tunnels: []uint16{4789}}
		for range r.IntN(4) {
			control.Addrs = append(control.Addrs, a.vtep())
		}
		return "reach", func(p *Pipeline) Program { return p.Program(control) }
	case 10:
		peer := a.vtep()
		return "peer/" + peer.String(), func(p *Pipeline) Program { return p.Program(Peer{VTEP: peer}) }
	case 0:
		return "net/" + n.ID, func(p *Pipeline) Program { return p.Program(n) }
	case 1, 2, 3:
		e := a.endpoint(n)
		return "ep/" + e.ID, func(p *Pipeline) Program { return p.Program(e) }
	case 4, 5:
		rule := Rule{
			ID: fmt.Sprint("r", i), Priority: uint8(1 + r.IntN(3)), SrcGroup: uint32(r.IntN(3)), DstGroup: uint32(r.IntN(3)),
			Proto: []uint8{0, of.ProtoICMP, of.ProtoTCP, of.ProtoUDP}[r.IntN(4)], DstPort: uint16(r.IntN(3)), Deny: r.IntN(2) == 0,
		}
		return "rule/" + rule.ID, func(p *Pipeline) Program { return p.Program(rule) }
	case 6:
		v := VRFPolicy{VRF: n.VRF, Generation: 1 + r.Uint32N(1000)}
		return fmt.Sprint("vrf/", n.VRF), func(p *Pipeline) Program { return p.Program(v) }
	case 7:
		f := Flood{Network: n}
		for range r.IntN(4) {
			f.Ports = append(f.Ports, 1+r.Uint32N(8))
			f.VTEPs = append(f.VTEPs, a.vtep())
		}
		return "flood/" + n.ID, func(p *Pipeline) Program { return p.Program(f) }
	case 8:
		s := a.service(n, i)
		return "svc/" + s.ID, func(p *Pipeline) Program { return p.Program(s) }
	}
	if a.settings.Encap == VXLAN {
		v := VRFPolicy{VRF: n.VRF, Generation: 1 + r.Uint32N(1000)}
		return fmt.Sprint("vrf/", n.VRF), func(p *Pipeline) Program { return p.Program(v) }
	}
	u := Uplink{Name: fmt.Sprint("eth", i%2), Port: 65010 + uint32(i%2)}
	return "uplink/" + u.Name, func(p *Pipeline) Program { return p.Program(u) }
}

func (a *agreement) vtep() netip.Addr {
	return netip.AddrFrom4([4]byte{192, 168, 60, byte(1 + a.rng.IntN(5))})
}

// endpoint may get an address that another endpoint has, as when a container moves.
func (a *agreement) endpoint(n Network) Endpoint {
	r, i := a.rng, a.rng.IntN(16)
	e := Endpoint{
		ID: fmt.Sprint("e", i), Encap: n.Encap, VRF: n.VRF, Tag: n.Tag, VNI: n.VNI, Group: uint32(r.IntN(3)), Policed: r.IntN(2) == 0,
		MAC: MAC{2, 2, 10, 1, 0, byte(i)}, IPv4: netip.AddrFrom4([4]byte{10, 1, byte(n.Tag - 100), byte(1 + i%14)}),
	}
	if r.IntN(2) == 0 {
		e.IPv6 = netip.MustParseAddr(fmt.Sprintf("2001:db8:%d::%d", n.Tag-100, 1+i))
	}
	if r.IntN(2) == 0 {
		e.VTEP = a.vtep()
		return e
	}
	e.Port = uint32(1 + i)
	e.QoS = []QoS{{}, {Rate: 1000 + r.Uint32N(3)}, {DSCP: 46}, {Rate: 5000, Burst: 5000, DSCP: 10}}[r.IntN(4)]
	return e
}

func (a *agreement) service(n Network, i int) Service {
	r := a.rng
	i %= 4
	s := Service{ID: fmt.Sprint("s", i), VRF: n.VRF, Affinity: time.Duration(r.IntN(2)) * time.Hour}
	for k, proto := range protocols() {
		f := Frontend{
			Number: uint32(1 + 10*i + k), Proto: proto, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n.Tag - 100), byte(200 + i)}), uint16(80+k)), Drop: r.IntN(2) == 0,
		}
		for v := range r.IntN(4) {
			f.Providers = append(f.Providers, Provider{
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n.Tag - 100), byte(1 + v)}), 8080), Draining: r.IntN(4) == 0,
			})
		}
		SortProviders(f.Providers)
		s.Frontends = append(s.Frontends, f)
	}
	return s
}

// flush waits until the bridge is up to date.
func (a *agreement) flush() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), eventually.Scaled(2*time.Minute))
	defer cancel()
	if err := a.s.Flushed(ctx); err != nil {
		a.t.Fatal(err)
	}
}

// check compares what the bridge reports with what the objects compile to. If several
// objects want different values for a key, any of these is accepted; check counts such
// keys.
func (a *agreement) check() (contested uint64) {
	a.t.Helper()
	a.flush()
	ctx, cancel := context.WithTimeout(a.t.Context(), eventually.Scaled(2*time.Minute))
	defer cancel()
	ch, err := agentParts{counts: &packetIns{}}.dial(ctx, a.sw.Target(a.p.Mode().String()))
	if err != nil {
		a.t.Fatal(err)
	}
	defer ch.Close()
	flows, groups, meters := map[of.FlowKey][]body{}, map[uint32][]of.Group{}, map[uint32][]of.Meter{}
	for _, p := range a.programs {
		for _, f := range p.Flows {
			flows[f.Key()] = append(flows[f.Key()], bodyOf(f))
		}
		for _, g := range p.Groups {
			groups[g.ID] = append(groups[g.ID], g)
		}
		for _, m := range p.Meters {
			meters[m.ID] = append(meters[m.ID], m)
		}
	}
	have := map[of.FlowKey]body{}
	if err := ch.Dump(ctx, func(f of.Flow) {
		if f.Cookie&cookieLearned == 0 {
			have[f.Key()] = bodyOf(f)
		}
	}); err != nil {
		a.t.Fatal(err)
	}
	contested += compareTables(a.t, "flow", flows, have, sameBody)
	haveGroups, haveMeters := map[uint32]of.Group{}, map[uint32]of.Meter{}
	all, err := ch.DumpGroups(ctx)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, g := range all {
		haveGroups[g.ID] = g
	}
	contested += compareTables(a.t, "group", groups, haveGroups, same[of.Group])
	list, err := ch.DumpMeters(ctx)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, m := range list {
		if m.ID <= lastMeter {
			haveMeters[m.ID] = m
		}
	}
	contested += compareTables(a.t, "meter", meters, haveMeters, same[of.Meter])
	if len(have) < 100 || len(a.programs) < 20 {
		a.t.Errorf("%d flows of %d objects: too few to prove anything", len(have), len(a.programs))
	}
	return contested
}

func compareTables[K comparable, V any](t *testing.T, what string, want map[K][]V, have map[K]V, equal func(a, b V) bool) (contested uint64) {
	t.Helper()
	for key, claims := range want {
		got, ok := have[key]
		if !ok {
			t.Errorf("%s %v is not in the bridge", what, key)
			continue
		}
		matches, disputed := false, false
		for _, v := range claims {
			matches, disputed = matches || equal(v, got), disputed || !equal(v, got)
		}
		if disputed {
			contested++
		}
		if !matches {
			t.Errorf("%s %v is %+v, want one of %+v", what, key, got, claims)
		}
	}
	for key := range have {
		if _, ok := want[key]; !ok {
			t.Errorf("%s %v is in the bridge, and nobody wants it", what, key)
		}
	}
	return contested
}
