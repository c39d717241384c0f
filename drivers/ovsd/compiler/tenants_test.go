package compiler

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// tenantObjects are a network, two endpoints, a rule and a service of a tenant; local says
// whether the first endpoint is on this host.
func tenantObjects(tenant string, encap ofnet.Encap, local bool) []drivers.Object {
	n := drivers.Network{
		Network: ofnet.Network{ID: "net." + tenant, Encap: encap, Tag: 7, VNI: 10007, Subnet4: netip.MustParsePrefix("10.1.0.0/16"), Gateway4: netip.MustParseAddr("10.1.255.254")},
		Tenant:  tenant, Name: "net",
	}
	endpoint := func(id, ip string, local bool) drivers.Endpoint {
		e := drivers.Endpoint{ID: tenant + id, Network: n, Group: 1, MAC: ofnet.MAC{2, 2, 10, 1, 0, id[0]}, IPv4: netip.MustParseAddr(ip), Local: local}
		if !local {
			e.VTEP = netip.MustParseAddr("192.168.60.11")
		}
		return e
	}
	return []drivers.Object{
		n, endpoint("1", "10.1.0.1", local), endpoint("2", "10.1.0.2", false),
		drivers.Rule{Tenant: tenant, Rule: ofnet.Rule{ID: tenant, Priority: 1, DstGroup: 1, Deny: true}},
		drivers.Service{ID: "svc." + tenant, Tenant: tenant, VIPs: []netip.Addr{netip.MustParseAddr("10.1.0.9")}, Ports: []drivers.ServicePort{{
			Proto: 6, Port: 80, Providers: []drivers.ServiceProvider{{Addr: netip.MustParseAddrPort("10.1.0.2:80")}},
		}}},
	}
}

// ownersOf lists the owners of programs whose names contain that of a tenant.
func ownersOf(tenant string, all map[ofnet.Encap]map[string]ofnet.Program) (owners []string) {
	for _, programs := range all {
		for owner := range maps.Keys(programs) {
			if strings.Contains(owner, tenant) && !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
		}
	}
	slices.Sort(owners)
	return owners
}

// A tenant without an endpoint on this host costs its switch nothing, unless the host needs the
// tenant's flows for another reason.
func TestTenantsElsewhereHaveNoFlows(t *testing.T) {
	everything := []string{"ep/blue2", "net/net.blue", "rule/blue", "svc/svc.blue@blue", "vrf/blue"}
	for name, c := range map[string]struct {
		objects []drivers.Object
		want    []string
	}{
		"elsewhere":          {objects: tenantObjects("blue", ofnet.VXLAN, false)},
		"here":               {tenantObjects("blue", ofnet.VXLAN, true), everything},
		"on the VLAN bridge": {tenantObjects("blue", ofnet.VLAN, false), append([]string{"ep/blue1"}, everything...)},
		"hosts reach all":    {append(tenantObjects("blue", ofnet.VXLAN, false), drivers.ClusterReach{}), append([]string{"ep/blue1"}, everything...)},
	} {
		t.Run(name, func(t *testing.T) {
			in := Inputs{Bridges: map[string]BridgeState{"vlan": {Round: 1}, "vxlan": {Round: 1}}, Synced: true, Tunnel: true}
			comp := New(testConfig(), in)
			comp.Apply(drivers.Global{FwdMode: "routing", ARPMode: "proxy", PvtSubnet: netip.MustParsePrefix("172.19.0.0/16")})
			for _, o := range c.objects {
				comp.Apply(o)
			}
			b := bridges{ofnet.VLAN: {}, ofnet.VXLAN: {}}
			for comp.Dirty() {
				out, _ := comp.Step(1000)
				b.take(out)
			}
			if diff := cmp.Diff(c.want, ownersOf("blue", b)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if name == "elsewhere" {
				if _, numbered := comp.VRFs["blue"]; numbered {
					t.Error("the tenant has a number")
				}
			}
		})
	}
}
