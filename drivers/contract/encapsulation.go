package contract

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// mover moves a network with two endpoints, one of them here, from one encapsulation to
// another.
type mover struct {
	t     *testing.T
	env   Env
	d     Driver
	ep    drivers.Endpoint // here
	far   drivers.Endpoint
	netns string
}

// flows is what the switch has once it has everything.
func (m *mover) flows(encap ofnet.Encap) string {
	m.t.Helper()
	if err := m.d.Flushed(long(m.t)); err != nil {
		m.t.Fatal(err)
	}
	return m.env.Flows(m.t, encap)
}

func (m *mover) declare(n drivers.Network) {
	m.t.Helper()
	m.d.Apply(n)
	m.far.Network, m.ep.Network = n, n
	m.d.Apply(m.far)
	m.d.Apply(m.ep)
	if _, err := m.d.Attach(long(m.t), attachment(m.ep.ID, m.netns), n.Encap, n.Tag); err != nil {
		m.t.Fatal(err)
	}
	if err := m.d.Realised(long(m.t), m.ep.ID); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mover) remove() {
	m.t.Helper()
	detach(m.t, m.d, m.ep.ID)
	m.d.Delete(drivers.KindEndpoint, m.far.ID)
	m.d.Delete(drivers.KindNetwork, Network.ID)
}

// encapsulationChanges has a network deleted and made again between two looks at the
// store: nothing of it stays in the other bridge.
func encapsulationChanges(t *testing.T, env Env) {
	m := &mover{t: t, env: env, d: start(t, env), ep: Endpoint(1), far: Endpoint(2), netns: env.Netns(t)}
	m.far.Local, m.far.VTEP = false, netip.MustParseAddr("192.168.60.11")
	vlan := Network
	vlan.Encap, vlan.Tag, vlan.VNI = ofnet.VLAN, 100, 0
	m.d.Delete(drivers.KindNetwork, Network.ID)
	m.d.Apply(allowedIn)
	m.d.Apply(drivers.EndpointPolicy{EndpointID: m.ep.ID, In: allowedIn.ID})
	other := func(encap ofnet.Encap) ofnet.Encap { return ofnet.VXLAN + ofnet.VLAN - encap }
	empty := map[ofnet.Encap]string{ofnet.VXLAN: m.flows(ofnet.VXLAN), ofnet.VLAN: m.flows(ofnet.VLAN)}
	want := map[ofnet.Encap]string{} // what the other switch has beside a network that was never there
	for _, n := range []drivers.Network{Network, vlan} {
		m.declare(n)
		want[n.Encap] = m.flows(other(n.Encap))
		m.remove()
	}
	for i, n := range []drivers.Network{Network, vlan, Network, vlan} {
		m.declare(n) // without a deletion in between
		if left := m.flows(other(n.Encap)); left != want[n.Encap] {
			t.Errorf("round %d: flows of the former encapsulation are left:\n%s\nwant:\n%s", i, left, want[n.Encap])
		}
		if m.flows(n.Encap) == empty[n.Encap] {
			t.Errorf("round %d: there are no flows", i)
		}
		if all := m.d.Attachments(); len(all) != 1 {
			t.Errorf("round %d: attachments %+v", i, all)
		}
	}
	m.remove()
	for encap, want := range empty {
		if left := m.flows(encap); left != want {
			t.Errorf("flows are left when all is gone:\n%s\nwant:\n%s", left, want)
		}
	}
	m.d.Delete(drivers.KindEndpointPolicy, m.ep.ID)
	m.d.Delete(drivers.KindPolicyRuleSet, allowedIn.ID)
}
