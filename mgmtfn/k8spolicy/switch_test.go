package k8spolicy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

const tunnelPort = 65000

// bridge is one of a real switch that has endpoint policies.
type bridge struct {
	*ofnet.Switch
	t       testing.TB
	sw      *ovstest.Switch
	p       *ofnet.Pipeline
	numbers map[string]uint32 // of sets
	guarded map[string]ofnet.Endpoint
	last    Result
}

func startBridge(t testing.TB) *bridge {
	t.Helper()
	b := &bridge{t: t, sw: ovstest.Start(t), numbers: map[string]uint32{"": 0}, guarded: map[string]ofnet.Endpoint{}}
	b.sw.AddBridge("br")
	log := logrus.New()
	log.SetOutput(io.Discard)
	b.Switch = ofnet.NewSwitch(ofnet.SwitchConfig{Name: "br", Target: b.sw.Target("br"), Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	var err error
	b.p, err = ofnet.NewPipeline(ofnet.Settings{Encap: ofnet.VXLAN, Routing: true, TunnelPort: tunnelPort, Round: 1, EndpointPolicies: true})
	if err != nil {
		t.Fatal(err)
	}
	b.Set("fixed", b.p.Program(ofnet.Base{}))
	b.InitialSyncDone()
	b.flush()
	return b
}

// flush waits until the switch has what was set.
func (b *bridge) flush() {
	b.t.Helper()
	if err := b.Flushed(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// declare has the bridge hold what a result says instead of the one before, as a driver does.
func (b *bridge) declare(now Result) {
	now.Declare(b, b.last)
	b.last = now
}

// Apply implements Declarer.
func (b *bridge) Apply(o drivers.Object) {
	switch o := o.(type) {
	case drivers.PolicyRuleSet:
		if b.numbers[o.ID] == 0 {
			b.numbers[o.ID] = ofnet.LowestPolicyRuleSet + uint32(len(b.numbers))
		}
		b.Set(owner(o.Key()), b.p.Program(ofnet.PolicyRuleSet{ID: o.ID, Number: b.numbers[o.ID], Out: o.Out, Allows: o.Allows}))
	case drivers.PolicyPeer:
		b.Set(owner(o.Key()), b.p.Program(ofnet.PolicyPeer{ID: o.Key().ID, VRF: 1, Addr: o.Addr, Class: o.Class}))
	case drivers.EndpointPolicy:
		if e, here := b.guarded[o.EndpointID]; here {
			b.Set(owner(o.Key()), b.p.Program(ofnet.EndpointPolicy{Endpoint: e, In: b.numbers[o.In], Out: b.numbers[o.Out]}))
		}
	}
}

// Delete implements Declarer.
func (b *bridge) Delete(k drivers.Kind, id string) { b.Remove(owner(drivers.Key{Kind: k, ID: id})) }

func owner(k drivers.Key) string { return fmt.Sprint(k.Kind, "/", k.ID) }

var remoteHost = netip.MustParseAddr("192.168.60.11")

// What policies say becomes of packets is what a real Open vSwitch does with them: of
// those between pods of this host at both ends, of others at the end that is here. What they
// say is asked of two evaluators. CONTIV_LONG tries 1,000 sets of policies.
func TestPoliciesOnARealSwitch(t *testing.T) {
	b := startBridge(t)
	network := ofnet.Network{ID: "net", Encap: ofnet.VXLAN, VRF: 1, Tag: 1, VNI: 10001}
	b.Set("net", b.p.Program(network))
	b.Set("peer", b.p.Program(ofnet.Peer{VTEP: remoteHost}))
	const here = 6 // pods; as many are elsewhere
	for i := range here {
		b.sw.AddDummyPort("br", fmt.Sprint("p", i+1), fmt.Sprint(i+1))
	}
	passed := fmt.Sprintf("goto_table:%d\n", slices.Index(b.p.Tables(), "service-reply")) // after all policy
	verdicts := map[bool]int{}
	rounds := 24
	if os.Getenv("CONTIV_LONG") != "" {
		rounds = 1000
	}
	for round := range rounds {
		g := generator{rand.New(rand.NewPCG(uint64(round), 4))}
		c := g.cluster(2*here, 6)
		for _, pod := range c.pods { // every address is somebody's, and on the network
			pod.Spec.HostNetwork, pod.Status.Phase = false, corev1.PodRunning
		}
		second := round%2 == 1
		if second {
			c.withoutNotIn()
		}
		opinion := c.opinion()
		w, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		endpoints := make([]ofnet.Endpoint, len(c.pods))
		local := map[string]Key{}
		for i, pod := range c.pods {
			e := &endpoints[i]
			ips := ParsePod(pod).IPs
			*e = ofnet.Endpoint{ID: fmt.Sprint("e", i), Encap: ofnet.VXLAN, VRF: 1, Tag: 1, VNI: 10001, Policed: true, MAC: ofnet.MAC{2, 2, 10, 1, 1, byte(i + 1)}, IPv4: ips[0], IPv6: ips[1]}
			if i < here {
				e.Port = uint32(i + 1)
				local[e.ID] = Key{pod.Namespace, pod.Name}
				b.guarded[e.ID] = *e
			} else {
				e.VTEP = remoteHost
			}
			b.Set("ep/"+e.ID, b.p.Program(*e))
		}
		r := w.Compile(local)
		b.declare(r)
		b.Set("vrf", b.p.Program(ofnet.VRFPolicy{VRF: 1, Generation: uint32(round + 1), EndpointPoliciesOnly: true}))
		b.flush()
		for range 25 {
			q := g.question(c)
			from, to := c.index(q.from.pod), c.index(q.to.pod)
			if from < 0 || to < 0 || from == to || from >= here && to >= here {
				continue
			}
			want := (from >= here || c.allowed(q.from.pod, true, q)) && (to >= here || c.allowed(q.to.pod, false, q))
			if second {
				if theirs := (from >= here || opinion.allowed(true, q)) && (to >= here || opinion.allowed(false, q)); theirs != want {
					t.Fatalf("round %d: allowed %t by the model, %t by the second opinion: %+v", round, want, theirs, q)
				}
			}
			verdicts[want]++
			trace := b.sw.Trace("br", packet(q, endpoints[from], endpoints[to]), "--ct-next", "trk,new")
			if got := strings.Contains(trace, passed); got != want {
				t.Fatalf("passes %t, expected %t: %s %s to %s %s, %s %d\n%+v\n%s", got, want,
					q.from.pod.Namespace, q.from.pod.Name, q.to.pod.Namespace, q.to.pod.Name, q.proto, q.port, r, trace)
			}
		}
	}
	if verdicts[true] < 20 || verdicts[false] < 20 {
		t.Errorf("denied %d, allowed %d: the test says little", verdicts[false], verdicts[true])
	}
}

func (c cluster) index(pod *corev1.Pod) int {
	for i, p := range c.pods {
		if p == pod {
			return i
		}
	}
	return -1
}

// packet writes the first packet of a connection as the bridge gets it.
func packet(q question, from, to ofnet.Endpoint) string {
	six := map[bool]string{true: "6"}[q.from.addr.Is6()]
	var text string
	switch q.proto {
	case corev1.ProtocolTCP:
		text = fmt.Sprintf("tcp%s,tcp_flags=syn,tcp_dst=%d", six, q.port)
	case corev1.ProtocolUDP:
		text = fmt.Sprintf("udp%s,udp_dst=%d", six, q.port)
	case corev1.ProtocolSCTP:
		text = fmt.Sprintf("sctp%s,sctp_dst=%d", six, q.port)
	default:
		if text = "icmp,icmp_type=8"; six != "" {
			text = "icmp6,icmpv6_type=128"
		}
	}
	if six != "" {
		text += fmt.Sprintf(",ipv6_src=%s,ipv6_dst=%s", q.from.addr, q.to.addr)
	} else {
		text += fmt.Sprintf(",nw_src=%s,nw_dst=%s", q.from.addr, q.to.addr)
	}
	text += fmt.Sprintf(",nw_ttl=64,dl_src=%s,dl_dst=%s", from.MAC, ofnet.RouterMAC)
	if from.Local() {
		return text + fmt.Sprint(",in_port=", from.Port)
	}
	return text + fmt.Sprintf(",in_port=%d,tun_src=%s,tun_dst=192.168.60.10,tun_id=10001", tunnelPort, remoteHost)
}
