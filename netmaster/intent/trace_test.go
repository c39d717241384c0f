package intent

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/objdb/memory"
)

// TestNamesWithDots: names of networks and tenants may have dots, and an endpoint belongs to
// the tenant of its network, wherever one could cut the network's id.
func TestNamesWithDots(t *testing.T) {
	e, _, stop := lead(t, memory.New())
	defer stop()
	for _, n := range []struct{ network, tenant string }{{"a.b", "t"}, {"n", "b.t"}} {
		e.mustPut(t, e.tenants(), n.tenant, fmt.Sprintf(`{"tenantName":%q}`, n.tenant))
		e.mustPut(t, e.networks(), n.tenant+":"+n.network, fmt.Sprintf(`{"tenantName":%q,"networkName":%q,"encap":"vxlan","subnet":"10.1.1.0/24"}`, n.tenant, n.network))
		req := endpoint(n.network, "", "c-"+n.tenant, "10.1.1.7")
		req.TenantName = n.tenant
		if _, err := e.CreateEndpoint(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, network := range map[string]string{"t": "a.b", "b.t": "n"} {
		found := e.EndpointsAt(netip.MustParseAddr("10.1.1.7"), tenant)
		if len(found) != 1 {
			t.Fatalf("%d endpoints with the address in tenant %s, want 1", len(found), tenant)
		}
		if gotNetwork, gotTenant := e.NetworkOf(found[0]); gotNetwork != network || gotTenant != tenant {
			t.Errorf("network %s of tenant %s, want %s of %s", gotNetwork, gotTenant, network, tenant)
		}
	}
}
