package intent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
)

// TestLateRelease: an address goes to another client while the release of its former owner
// is still on its way; that release does not end the new reservation, whatever the names of
// the two, also under the next leader.
func TestLateRelease(t *testing.T) {
	for _, c := range []struct {
		name                   string
		host, reservation      string // of the former owner
		newHost, newReserve    string
		releaseHost            string // what the former owner's release says
		releaseName            string
		sweep, newLeaderBefore bool
	}{
		{name: "as the original's clients"},
		{name: "under the next leader", newLeaderBefore: true},
		{name: "a host's, then another's", host: "host1", newHost: "host2", releaseHost: "host1"},
		{name: "a host's, that does not say so", host: "host1", newHost: "host2"},
		{name: "the same host's", host: "host1", newHost: "host1", releaseHost: "host1"},
		{name: "named", host: "host1", reservation: "a", newHost: "host1", newReserve: "b", releaseHost: "host1", releaseName: "a"},
		{name: "named, then not", host: "host1", reservation: "a", releaseHost: "host1", releaseName: "a"},
		{name: "not named, then named", newHost: "host2", newReserve: "b"},
		{name: "reserved for too long", sweep: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New()
			e, _, stop := lead(t, store)
			defer func() { stop() }()
			e.mustNetwork(t, "n", "10.1.1.0/24")
			reserve := func(host, name, want string) string {
				t.Helper()
				got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default", PreferredIPv4Address: want, Host: host, Reservation: name})
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSuffix(got.IPv4Address, "/24")
			}
			release := func(host, name, addr string) {
				t.Helper()
				err := e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default|10.1.1.0/24", IPv4Address: addr, Host: host, Reservation: name})
				if err != nil {
					t.Fatal(err)
				}
			}
			addr := reserve(c.host, c.reservation, "")
			if c.sweep {
				seen, _ := e.staleReservations(nil, time.Now(), nil)
				_, stale := e.staleReservations(seen, time.Now().Add(reservedFor), nil)
				if err := e.giveBack(t.Context(), stale); err != nil || len(stale) != 1 {
					t.Fatalf("%d stale reservations, %v", len(stale), err)
				}
			} else {
				if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "former", addr)); err != nil {
					t.Fatal(err)
				}
				if _, err := e.DeleteEndpoint(t.Context(), masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: "former"}); err != nil {
					t.Fatal(err)
				}
			}
			if c.newLeaderBefore {
				stop()
				e, _, stop = lead(t, store)
			}
			if again := reserve(c.newHost, c.newReserve, ""); again != addr {
				t.Fatalf("the next client gets %s, want %s, which is free again", again, addr)
			}
			release(c.releaseHost, c.releaseName, addr)
			if third := reserve("host3", "c", ""); third == addr {
				t.Errorf("a third client gets %s, which is reserved", third)
			}
			e.checkConsistent(t)
			// Only its owner can end the reservation.
			release(c.newHost, c.newReserve, addr)
			if got := reserve("host3", "d", ""); got != addr {
				t.Errorf("after its release %s is not free: the next one is %s", addr, got)
			}
			e.checkConsistent(t)
		})
	}
}

// TestReserveOnce: a request repeated with the name of a reservation, because a reply was
// lost, gets the same address, until it belongs to an endpoint.
func TestReserveOnce(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer func() { stop() }()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	ask := func(name, want string) string {
		t.Helper()
		got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default", PreferredIPv4Address: want, Host: "host1", Reservation: name})
		if err != nil {
			t.Fatal(err)
		}
		return got.IPv4Address
	}
	for range 2 {
		for name, want := range map[string]string{"a": "10.1.1.7", "b": "10.1.1.8"} {
			if got := ask(name, want); got != want+"/24" {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		stop()
		e, _, stop = lead(t, store)
	}
	if first, again := ask("c", ""), ask("c", ""); first != again || first == ask("d", "") {
		t.Errorf("c is %s, then %s", first, again)
	}
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", "10.1.1.7")); err != nil {
		t.Fatal(err)
	}
	if got := ask("a", ""); got == "10.1.1.7/24" {
		t.Error("an endpoint's address is reserved once more")
	}
	e.checkConsistent(t)
}

// TestReleasesAreForgotten: a client that never releases does not disable the releases of
// the next one forever.
func TestReleasesAreForgotten(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	e.mustNetwork(t, "gone", "10.2.1.0/24")
	for _, net := range []string{"n", "gone"} {
		for i := range maxLateReleases + 3 {
			name := fmt.Sprint("c", i)
			if _, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: net + ".default"}); err != nil {
				t.Fatal(err)
			}
			ch, err := e.CreateEndpoint(t.Context(), endpoint(net, "", name, strings.Replace("10.1.1.1", "10.1", map[string]string{"n": "10.1", "gone": "10.2"}[net], 1)))
			if err != nil || !strings.HasSuffix(ch.Endpoint.IPAddress, ".1.1") {
				t.Fatal(ch, err)
			}
			if _, err := e.DeleteEndpoint(t.Context(), masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: net, EndpointID: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.networks().Delete(t.Context(), "default:gone"); err != nil {
		t.Fatal(err)
	}
	if n := len(e.model.late.base); n != 1 {
		t.Errorf("releases of %d addresses are waited for, want those of the network that is there", n)
	}
	if n := len(e.model.late.base[claimKey{"n.default", "10.1.1.1"}].v.From); n != maxLateReleases {
		t.Errorf("%d releases are waited for, want at most %d", n, maxLateReleases)
	}
	now := time.Now()
	seen, over := e.overdueReleases(nil, now)
	if len(over) != 0 {
		t.Errorf("%v are overdue at once", over)
	}
	_, over = e.overdueReleases(seen, now.Add(lateFor))
	if err := e.forgetReleases(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	e.checkConsistent(t)
	for range 2 {
		got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default"})
		if err != nil || got.IPv4Address != "10.1.1.1/24" {
			t.Fatalf("%s, %v, want the address that was given back", got.IPv4Address, err)
		}
		if err := e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", IPv4Address: "10.1.1.1"}); err != nil {
			t.Fatal(err)
		}
	}
}

// client reserves an address, may use it for an endpoint, and releases it once, at any
// time.
type client struct {
	host, name, addr string
	endpoint         string // has the address; empty: none
	used, released   bool
}

// TestReservationsHold lets clients with and without names reserve few addresses, use them
// and release them early, late and in any order. Nobody else gets an address that a client
// has reserved and not released; and when all have released theirs, all are free.
func TestReservationsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memory.New()
		e, _, stop := lead(t, store)
		defer func() { stop() }()
		e.mustNetwork(t, "n", "10.1.1.0/29")
		var clients []*client
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		release := func(c *client) {
			c.released = true
			must(e.ReleaseAddress(t.Context(), masterapi.ReleaseAddressRequest{NetworkID: "n.default", IPv4Address: c.addr, Host: c.host, Reservation: c.name}))
		}
		remove := func(c *client) {
			_, err := e.DeleteEndpoint(t.Context(), masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: c.endpoint})
			must(err)
			c.endpoint = ""
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch op := rapid.SampledFrom([]string{"reserve", "reserve", "use", "remove", "release", "lead"}).Draw(t, "op"); op {
			case "reserve":
				c := &client{host: rapid.SampledFrom([]string{"", "host1", "host2"}).Draw(t, "host")}
				if rapid.Bool().Draw(t, "named") {
					c.name = fmt.Sprint("r", i)
				}
				got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default", Host: c.host, Reservation: c.name})
				if err != nil {
					continue // all are taken
				}
				c.addr = strings.TrimSuffix(got.IPv4Address, "/29")
				for _, other := range clients {
					if other.addr == c.addr && (other.endpoint != "" || !other.used && !other.released) {
						t.Fatalf("%+v gets what is %+v's", c, other)
					}
				}
				clients = append(clients, c)
			case "lead":
				stop()
				e, _, stop = lead(t, store)
			default:
				if len(clients) == 0 {
					continue
				}
				c := rapid.SampledFrom(clients).Draw(t, "client")
				switch {
				case op == "use" && !c.used && !c.released:
					c.endpoint, c.used = fmt.Sprint("c", i), true
					_, err := e.CreateEndpoint(t.Context(), endpoint("n", "", c.endpoint, c.addr))
					must(err)
				case op == "remove" && c.endpoint != "":
					remove(c)
				case op == "release" && !c.released:
					release(c)
				}
			}
		}
		e.checkConsistent(t)
		for _, c := range clients {
			if c.endpoint != "" {
				remove(c)
			}
			if !c.released {
				release(c)
			}
		}
		e.checkConsistent(t)
		left := slices.Collect(func(yield func(string) bool) {
			for k, r := range e.model.addrs.base {
				if !yield(k.what + " " + r.v.Owner) {
					return
				}
			}
		})
		if len(left) != 0 {
			t.Fatalf("when all has been given back there are %v", left)
		}
	})
}
