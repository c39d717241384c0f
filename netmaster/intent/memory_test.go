package intent

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
)

// release ends the term of an engine, and returns how many bytes that has freed.
func release(e **Engine, stop *func()) int {
	before := heap()
	(*stop)()
	*e, *stop = nil, nil
	return int(before) - int(heap())
}

func unsafeData(s string) *byte { return unsafe.StringData(s) }

// Bytes that an endpoint with its address, and a rule with its records, may take in a model. They
// took 1,397 and 1,684 when each had its own copy of all texts, and a map for each value in an
// index.
const (
	perEndpoint = 1050
	perRule     = 1300
)

// TestMemory bounds what a model takes, as it was made by requests and as it was loaded.
func TestMemory(t *testing.T) {
	const tenants, endpoints, rules = 20, 5000, 2000
	for _, c := range []struct {
		what       string
		n, maximum int
		make       func(*Engine)
	}{
		{"endpoints", endpoints, perEndpoint, func(e *Engine) {
			for i := range endpoints {
				tenant := fmt.Sprint("tenant", i%tenants)
				req := masterapi.CreateEndpointRequest{
					TenantName: tenant, NetworkName: "network", ServiceName: "group", EndpointID: fmt.Sprintf("%064x", i),
					ConfigEP: masterapi.ConfigEP{Container: fmt.Sprintf("%064x", i), Host: fmt.Sprint("host", i%50), ServiceName: "group"},
				}
				if _, err := e.CreateEndpoint(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"rules", rules, perRule, func(e *Engine) {
			for i := range rules {
				tenant, id := fmt.Sprint("tenant", i%tenants), fmt.Sprint(i/tenants)
				e.mustPut(t, e.rules(), tenant+":policy:"+id, fmt.Sprintf(
					`{"tenantName":%q,"policyName":"policy","ruleId":%q,"direction":"in","action":"allow","protocol":"tcp","port":%d,"fromEndpointGroup":"group"}`, tenant, id, 1+i))
			}
		}},
	} {
		store := memory.New()
		e, _, stop := lead(t, store)
		for i := range tenants {
			tenant := fmt.Sprint("tenant", i)
			e.mustPut(t, e.tenants(), tenant, fmt.Sprintf(`{"tenantName":%q}`, tenant))
			e.mustPut(t, e.networks(), tenant+":network", fmt.Sprintf(`{"tenantName":%q,"networkName":"network","encap":"vxlan","subnet":"10.0.0.0/16"}`, tenant))
			e.mustPut(t, e.policies(), tenant+":policy", fmt.Sprintf(`{"tenantName":%q,"policyName":"policy"}`, tenant))
			e.mustPut(t, e.groups(), tenant+":group", fmt.Sprintf(`{"tenantName":%q,"groupName":"group","networkName":"network","policies":["policy"]}`, tenant))
		}
		c.make(e)
		made := release(&e, &stop)
		e, _, stop = lead(t, store)
		loaded := release(&e, &stop)
		runtime.KeepAlive(store)
		for how, bytes := range map[string]int{"made": made, "loaded": loaded} {
			if each := bytes / c.n; each > c.maximum {
				t.Errorf("%s, %s: %d bytes each, expected %d at most", c.what, how, each, c.maximum)
			} else {
				t.Logf("%s, %s: %d bytes each", c.what, how, each)
			}
		}
	}
}
