package intent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
)

// TestHeld: an address held by the manager of a swarm is not given to others until the
// manager releases it, in whatever order manager and endpoint release it.
func TestHeld(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustPut(t, e.networks(), "default:n", `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24","gateway":"10.1.1.254"}`)
	alloc := func(want string, held bool) (string, error) {
		got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default", PreferredIPv4Address: want, Held: held})
		return got.IPv4Address, err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	release := func(a string) {
		t.Helper()
		must(e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", IPv4Address: a}))
	}
	create := func(name, a string) error {
		_, err := e.CreateEndpoint(t.Context(), endpoint("n", "", name, a))
		return err
	}
	remove := func(name string) {
		t.Helper()
		_, err := e.DeleteEndpoint(t.Context(), masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: name})
		must(err)
	}
	const reserved, gateway = "reserved/n.default", "gateway"
	expect := func(want map[string]string) {
		t.Helper()
		want["10.1.1.254"] = gateway
		if diff := cmp.Diff(want, claims(t, store, "n.default")); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		e.checkConsistent(t)
	}
	for _, want := range []string{"", "10.1.1.1", "10.1.1.1/24"} { // and again, after a restart
		if got, err := alloc(want, true); err != nil || got != "10.1.1.1/24" {
			t.Errorf("held %q: %s, %v", want, got, err)
		}
	}
	if got, err := alloc("10.1.1.1", false); err == nil {
		t.Errorf("what is held is handed out: %s", got)
	}
	if got, err := alloc("10.1.1.254", true); err == nil {
		t.Errorf("a gateway is held: %s", got)
	}
	// The endpoint goes first.
	must(create("a", "10.1.1.1"))
	if err := create("b", "10.1.1.1"); err == nil {
		t.Error("two endpoints have one address")
	}
	if got, err := alloc("10.1.1.1", true); err != nil || got != "10.1.1.1/24" {
		t.Errorf("held, with an endpoint: %s, %v", got, err)
	}
	expect(map[string]string{"10.1.1.1": "endpoint/n.default-a"})
	remove("a")
	expect(map[string]string{"10.1.1.1": reserved})
	release("10.1.1.1")
	expect(map[string]string{})
	// The manager goes first.
	_, err := alloc("", true)
	must(err)
	must(create("c", "10.1.1.1"))
	release("10.1.1.1")
	expect(map[string]string{"10.1.1.1": "endpoint/n.default-c"})
	remove("c")
	expect(map[string]string{})
	// A virtual address has no endpoint; it stays while a docker network stands for the
	// network, but not forever after.
	_, err = alloc("", true)
	must(err)
	record := []byte(`{"id":"default.n.","tenantName":"default","networkName":"n","docknetUUID":"x"}`)
	_, err = store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(docknet.Root+"default.n.", record)}})
	must(err)
	holders, err := e.holders(t.Context())
	must(err)
	begin := time.Now()
	if seen, _ := e.staleReservations(nil, begin, holders); len(seen) != 0 {
		t.Errorf("what is held may become stale: %v", seen)
	}
	seen, _ := e.staleReservations(nil, begin, nil)
	_, stale := e.staleReservations(seen, begin.Add(reservedFor), nil)
	must(e.giveBack(t.Context(), stale))
	expect(map[string]string{})
	// A manager that starts over holds what it asks for again, and nothing else.
	for range 3 {
		_, err = alloc("", true)
		must(err)
	}
	must(create("d", "10.1.1.3"))
	must(e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", Held: true}))
	_, err = alloc("10.1.1.1", true)
	must(err)
	seen, _ = e.staleReservations(nil, begin, holders)
	_, stale = e.staleReservations(seen, begin.Add(reservedFor), holders)
	must(e.giveBack(t.Context(), stale))
	expect(map[string]string{"10.1.1.1": reserved, "10.1.1.3": "endpoint/n.default-d"})
	remove("d")
	release("10.1.1.1")
	expect(map[string]string{})
	// If its docker network is gone it releases nothing.
	for range 2 {
		_, err = alloc("", true)
		must(err)
	}
	must(create("e", "10.1.1.2"))
	must(e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", Held: true, Gone: true}))
	expect(map[string]string{"10.1.1.2": "endpoint/n.default-e"})
	remove("e")
	expect(map[string]string{})
}
