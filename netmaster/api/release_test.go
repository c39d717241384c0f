package api_test

import (
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// TestLateReleaseOfTheOriginal: with the requests that clients of the original send, a late
// release of an address does not make what another client has reserved meanwhile a third one's.
func TestLateReleaseOfTheOriginal(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	reserve := func(want string) exchange {
		return exchange{"POST", alloc, `{"NetworkID":"n.default","AddressPool":"10.1.1.0/24"}`, 200, `{"NetworkID":"n.default","IPv4Address":"` + want + `/24"}`}
	}
	release := func(addr string) exchange {
		return exchange{"POST", rel, `{"NetworkID":"n.default|10.1.1.0/24","IPv4Address":"` + addr + `"}`, 200, `{"Status":"success"}`}
	}
	play(t, base, []exchange{
		{"POST", networkPath + "default:n/", `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24"}`, 200, `~`},
		reserve("10.1.1.1"),
		{"POST", create, ep("n", "", "former", "10.1.1.1"), 200, `~"ipAddress":"10.1.1.1"`},
		{"POST", del, gone("n", "former"), 200, `~former`},
		reserve("10.1.1.1"), // another client
		release("10.1.1.1"), // the former owner's
		reserve("10.1.1.2"), // a third client
		{"POST", create, ep("n", "", "another", "10.1.1.1"), 200, `~"ipAddress":"10.1.1.1"`},
		release("10.1.1.1"), // early: it belongs to an endpoint
		{"POST", del, gone("n", "another"), 200, `~another`},
		release("10.1.1.2"),
		reserve("10.1.1.1"), // no release is to come: this one's ends it
		release("10.1.1.1"),
		reserve("10.1.1.1"),
	})
}
