package intent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// TestReserveAgain: the host that has reserved an address may request it again, until it
// belongs to an endpoint; others may not.
func TestReserveAgain(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	ask := func(host string) error {
		_, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default", PreferredIPv4Address: "10.1.1.7", Host: host})
		return err
	}
	for range 2 {
		if err := ask("host1"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"10.1.1.7": "reserved/n.default on host1"}, claims(t, store, "n.default")); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	for _, host := range []string{"host2", ""} {
		if err := ask(host); !errs.Is(err, errs.Conflict) {
			t.Errorf("asked by %q: %v, want kind conflict", host, err)
		}
	}
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", "10.1.1.7")); err != nil {
		t.Fatal(err)
	}
	if err := ask("host1"); !errs.Is(err, errs.Conflict) {
		t.Errorf("asked for when an endpoint has it: %v, want kind conflict", err)
	}
	e.checkConsistent(t)
}
