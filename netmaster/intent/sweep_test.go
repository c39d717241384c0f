package intent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
)

// TestSweep checks that only an address that was reserved and never used is freed.
func TestSweep(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustPut(t, e.networks(), "default:n", `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24","gateway":"10.1.1.254"}`)
	reserve := func() string {
		t.Helper()
		got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default"})
		if err != nil {
			t.Fatal(err)
		}
		return got.IPv4Address
	}
	reserve() // 10.1.1.1, for ever
	reserve() // 10.1.1.2, for an endpoint
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", "10.1.1.2")); err != nil {
		t.Fatal(err)
	}
	reserve() // 10.1.1.3, to be reserved anew
	start := time.Now()
	seen, stale := e.staleReservations(nil, start, nil)
	if len(seen) != 2 || len(stale) != 0 {
		t.Fatalf("at first %d reservations are seen, %d are stale", len(seen), len(stale))
	}
	if err := e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", IPv4Address: "10.1.1.3"}); err != nil {
		t.Fatal(err)
	}
	if got := reserve(); got != "10.1.1.3/24" {
		t.Fatalf("reserved %s", got)
	}
	seen, stale = e.staleReservations(seen, start.Add(reservedFor-time.Second), nil)
	if len(seen) != 2 || len(stale) != 0 {
		t.Errorf("before the time is over %d reservations are seen, %d are stale", len(seen), len(stale))
	}
	_, stale = e.staleReservations(seen, start.Add(reservedFor), nil)
	if len(stale) != 1 || stale[0].what != "10.1.1.1" {
		t.Fatalf("stale: %v", stale)
	}
	// One that is used at the last moment stays.
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "late", "10.1.1.1")); err != nil {
		t.Fatal(err)
	}
	if err := e.giveBack(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	all := reservation{claimKey{"n.default", "10.1.1.3"}, 0}
	for res := range seen {
		if res.what == all.what {
			all = res
		}
	}
	if err := e.giveBack(t.Context(), []reservation{all}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"10.1.1.1": "endpoint/n.default-late", "10.1.1.2": "endpoint/n.default-c", "10.1.1.254": "gateway"}
	if diff := cmp.Diff(want, claims(t, store, "n.default")); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	e.checkConsistent(t)
}
