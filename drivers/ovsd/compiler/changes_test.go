package compiler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// changes makes random changes to a compiler's inputs, with so few ids that they collide.
type changes struct {
	*rand.Rand
	c *Compiler
}

func testConfig() Config {
	return Config{
		HostLabel: "host1", VTEP: netip.MustParseAddr("192.168.60.10"), CtrlIP: netip.MustParseAddr("192.168.2.10"),
		ControlPorts: []ofnet.PortRange{{Proto: 6, Low: 9999, High: 9999}}, EndpointPolicies: true, TunnelPort: 65000,
		DNS: ofnet.DNSSettings{Rate: 100, Port: 65001},
	}
}

func pick[T any](r changes, of ...T) T { return of[r.IntN(len(of))] }

func (r changes) network() drivers.Network {
	tenant, name := pick(r, "default", "blue", "red"), pick(r, "a", "b", "infra")
	subnet := r.IntN(3)
	n := drivers.Network{
		Network: ofnet.Network{
			ID: name + "." + tenant, Encap: pick(r, ofnet.VXLAN, ofnet.VXLAN, ofnet.VLAN), Tag: uint16(1 + r.IntN(3)), VNI: uint32(10000 + r.IntN(3)),
			Subnet4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(subnet), 0, 0}), 16), Gateway4: netip.AddrFrom4([4]byte{10, byte(subnet), 0, 254}),
		},
		Tenant: tenant, Name: name, Infra: name == "infra",
	}
	if r.IntN(2) == 0 {
		n.Subnet6 = netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/64", subnet))
	}
	return n
}

func (r changes) endpoint() drivers.Endpoint {
	n := r.network()
	e := drivers.Endpoint{
		ID: r.endpointID(), Network: n, Group: uint32(r.IntN(3)), MAC: ofnet.MAC{2, 2, 10, 0, 0, byte(r.IntN(4))},
		IPv4: netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), 0, byte(1 + r.IntN(3))}), Local: r.IntN(3) > 0,
	}
	if n.Subnet6.IsValid() {
		e.IPv6 = netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", 1+r.IntN(3)))
	}
	if !e.Local && r.IntN(4) > 0 {
		e.VTEP = netip.AddrFrom4([4]byte{192, 168, 60, byte(11 + r.IntN(2))})
	}
	if e.Local && n.Encap == ofnet.VLAN && r.IntN(2) == 0 {
		e.Tag = uint16(100 + r.IntN(2))
	}
	return e
}

func (r changes) endpointID() string { return fmt.Sprint("ep", r.IntN(6)) }

func (r changes) service() drivers.Service {
	which := r.IntN(2) // two services with the same address would compete for the frontend's number
	s := drivers.Service{
		ID: []string{"web", "db"}[which], Tenant: pick(r, "", "", "default", "blue"), OnlyLocal: r.IntN(3) == 0,
		VIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(which), byte(r.IntN(3))})},
	}
	for port := range 1 + r.IntN(2) {
		p := drivers.ServicePort{Proto: 6, Port: uint16(80 + port)}
		for i := range r.IntN(3) {
			p.Providers = append(p.Providers, drivers.ServiceProvider{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), 8080), Tenant: pick(r, "", "default"), Local: r.IntN(2) == 0})
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

func (r changes) policyPeer() drivers.PolicyPeer {
	return drivers.PolicyPeer{Tenant: pick(r, "default", "blue", "red"), Addr: netip.AddrFrom4([4]byte{10, 9, 9, byte(r.IntN(3))}), Class: uint32(1 + r.IntN(2))}
}

func (r changes) ruleSet() drivers.PolicyRuleSet {
	s := drivers.PolicyRuleSet{ID: pick(r, "s1", "s2", "s3"), Out: r.IntN(2) == 0}
	for i := range r.IntN(3) {
		s.Allows = append(s.Allows, ofnet.Allow{Ports: []ofnet.PortRange{{Proto: 6, Low: uint16(80 + i), High: uint16(90 + r.IntN(2))}}})
	}
	return s
}

func (r changes) host() drivers.Host {
	h := drivers.Host{Label: pick(r, "host1", "host2", "host3"), VTEP: netip.AddrFrom4([4]byte{192, 168, 60, byte(10 + r.IntN(3))})}
	for i := range r.IntN(3) {
		h.Addresses = append(h.Addresses, netip.AddrFrom4([4]byte{192, 168, 2, byte(i)}))
	}
	return h
}

func (r changes) ports() map[string]PortNumber {
	out := maps.Clone(r.c.Ports)
	for range 1 + r.IntN(4) {
		id, n := pick(r, r.endpointID(), r.endpointID(), HostEndpointVXLAN, HostEndpointVLAN), 1+r.IntN(8)
		if r.IntN(3) == 0 {
			delete(out, id)
		} else {
			out[id] = PortNumber{OpenFlow: uint32(n), Name: n}
		}
	}
	return out
}

func (r changes) uplinks() map[string]ofnet.Uplink {
	out := map[string]ofnet.Uplink{}
	for i := range r.IntN(3) {
		name := fmt.Sprint("up", i)
		out[name] = ofnet.Uplink{Name: name, Port: uint32(65010 + r.IntN(2)), Down: r.IntN(3) == 0}
	}
	return out
}

// seldom changes inputs on which everything depends.
func (r changes) seldom() {
	switch r.IntN(7) {
	case 0:
		r.c.Apply(drivers.Global{
			FwdMode: pick(r, "routing", "bridge"), ARPMode: pick(r, "proxy", "flood"),
			PvtSubnet: netip.MustParsePrefix(pick(r, "172.19.0.0/16", "172.20.0.0/16", "172.20.0.0/24")),
		})
	case 1:
		r.c.Apply(drivers.ClusterReach{Services: []netip.Prefix{netip.MustParsePrefix(pick(r, "10.96.0.0/12", "10.112.0.0/12"))}})
	case 2:
		e := pick(r, ofnet.VLAN, ofnet.VXLAN)
		r.c.SetBridge(e, BridgeState{Round: 1, Kernel: r.IntN(2) == 0})
	case 3:
		r.c.SetSynced()
	case 4:
		r.c.SetControlPorts([]ofnet.PortRange{{Proto: 6, Low: 80, High: uint16(80 + r.IntN(3))}})
	case 5:
		r.c.SetUplinks(r.uplinks())
	case 6:
		r.c.SetTunnel(r.IntN(2) == 0)
	}
}

// change makes one change.
func (r changes) change() {
	switch r.IntN(17) {
	case 0:
		r.seldom()
	case 1, 2:
		r.c.Apply(r.network())
	case 3, 4, 5:
		r.c.Apply(r.endpoint())
	case 6, 7:
		r.c.SetPorts(r.ports())
	case 8:
		r.c.Apply(drivers.Rule{Tenant: pick(r, "default", "blue"), Audit: r.IntN(3) == 0, Rule: ofnet.Rule{ID: pick(r, "r1", "r2", "r3"), Priority: uint8(r.IntN(3)), DstGroup: 1, Deny: r.IntN(2) == 0}})
	case 9:
		r.c.Apply(r.service())
	case 10:
		r.c.Apply(r.ruleSet())
	case 11, 12:
		r.c.Apply(drivers.EndpointPolicy{EndpointID: r.endpointID(), In: pick(r, "", "s1", "s2"), Out: pick(r, "", "s2", "s3")})
	case 13:
		r.c.Apply(r.host())
	case 14:
		r.c.Apply(r.policyPeer())
	default:
		r.delete()
	}
}

func (r changes) delete() {
	o := pick[drivers.Object](r, r.network(), r.endpoint(), r.service(), r.ruleSet(), r.policyPeer(), r.host(),
		drivers.EndpointPolicy{EndpointID: r.endpointID()}, drivers.Rule{Rule: ofnet.Rule{ID: pick(r, "r1", "r2", "r3")}})
	r.c.Delete(o.Key().Kind, o.Key().ID)
}

// objects lists what is declared and can be deleted.
func (r changes) objects() (all []drivers.Object) {
	in := r.c.Inputs
	for _, o := range in.Networks {
		all = append(all, o)
	}
	for _, o := range in.Endpoints {
		all = append(all, o)
	}
	for _, o := range in.Rules {
		all = append(all, o)
	}
	for _, o := range in.Services {
		all = append(all, o)
	}
	for _, o := range in.RuleSets {
		all = append(all, o)
	}
	for _, o := range in.PolicyPeers {
		all = append(all, o)
	}
	for _, o := range in.EndpointPolicies {
		all = append(all, o)
	}
	for _, o := range in.Hosts {
		all = append(all, o)
	}
	return all
}

// relist declares all objects again, as after the store was unreachable.
func (r changes) relist() {
	all := append(r.objects(), r.c.Global)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, o := range slices.Concat(all, all[:len(all)/2]) {
		r.c.Apply(o)
	}
}
