package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// scripted answers one request after the other as told: a status, or 0 to break the
// connection off. The last one counts for the rest.
func scripted(t *testing.T, body string, statuses ...int) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := statuses[min(int(asked.Add(1)), len(statuses))-1]
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		if status == http.StatusServiceUnavailable {
			_, _ = w.Write([]byte("Leader not found\n"))
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// TestRepeats: what finds no leader is repeated until one serves it, unless it may have been
// served and must not be twice; what is refused is not.
func TestRepeats(t *testing.T) {
	network := &contivmodel.Network{TenantName: "blue", NetworkName: "n"}
	list := func(ctx context.Context, c *client.Client) error {
		_, err := client.List(ctx, c, contivmodel.NetworkKind())
		return err
	}
	put := func(ctx context.Context, c *client.Client) error {
		_, err := client.Put(ctx, c, contivmodel.NetworkKind(), network)
		return err
	}
	remove := func(ctx context.Context, c *client.Client) error {
		return client.Delete(ctx, c, contivmodel.NetworkKind(), "blue:n")
	}
	reserve := func(ctx context.Context, c *client.Client) error {
		_, err := c.AllocAddress(ctx, masterapi.AllocAddressRequest{NetworkID: "n.blue"})
		return err
	}
	for name, c := range map[string]struct {
		do       func(context.Context, *client.Client) error
		body     string
		statuses []int
		asked    int32
		fails    bool
	}{
		"a list":                            {list, "[]", []int{503, 503, 200}, 3, false},
		"a list, broken off":                {list, "[]", []int{0, 503, 200}, 3, false},
		"an object":                         {put, "{}", []int{503, 0, 200}, 3, false},
		"a refusal":                         {put, "no such tenant", []int{503, 500, 200}, 2, true},
		"a deletion":                        {remove, `"blue:n"`, []int{503, 200}, 2, false},
		"a deletion that took effect":       {remove, "network not found", []int{0, 500}, 2, false},
		"a deletion of nothing":             {remove, "network not found", []int{500}, 1, true},
		"a deletion that is refused":        {remove, "it has endpoint groups: web", []int{503, 500}, 2, true},
		"a reservation that may be there":   {reserve, "{}", []int{503, 200}, 1, true},
		"a reservation that is not there":   {reserve, "{}", []int{200}, 1, false},
		"a reservation that was broken off": {reserve, "{}", []int{0, 200}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := scripted(t, c.body, c.statuses...)
			err := c.do(t.Context(), dial(t, client.Config{URLs: []string{url}, Patience: time.Hour}))
			if (err != nil) != c.fails || asked.Load() != c.asked {
				t.Errorf("%v after %d requests, want failure %t after %d", err, asked.Load(), c.fails, c.asked)
			}
		})
	}
}

// TestWaitsForTheNext: a request waits for a netmaster that listens again, whatever it is, and
// gives up when its time is over.
func TestWaitsForTheNext(t *testing.T) {
	addr := netxtest.FreeAddress(t)
	c := dial(t, client.Config{URLs: []string{"http://" + addr}, Patience: time.Hour})
	served := make(chan error, 1)
	go func() {
		_, err := c.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.blue"})
		served <- err
	}()
	select {
	case err := <-served:
		t.Fatalf("nobody listens, and the request ends: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}

	c = dial(t, client.Config{URLs: []string{"http://" + netxtest.FreeAddress(t)}, Patience: 300 * time.Millisecond})
	if _, err := client.List(t.Context(), c, contivmodel.NetworkKind()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("nobody ever listens: %v", err)
	}
}

// TestCreatedBefore: a creation whose answer was lost, and that cannot be repeated, has succeeded
// if the object is the one that was asked for.
func TestCreatedBefore(t *testing.T) {
	for there, fails := range map[string]bool{
		`{"key":"blue:n","networkName":"n","tenantName":"blue","subnet":"10.1.1.0/24","encap":"vxlan","link-sets":{"Servicelbs":{}}}`: false,
		`{"key":"blue:n","networkName":"n","tenantName":"blue","subnet":"10.2.2.0/24","encap":"vxlan"}`:                               true,
		`{"key":"blue:n","networkName":"n","tenantName":"blue"}`:                                                                      true,
	} {
		for _, lost := range []bool{true, false} {
			posts := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = w.Write([]byte(there))
					return
				}
				if posts++; lost && posts == 1 {
					panic(http.ErrAbortHandler)
				}
				http.Error(w, "cannot change network parameters after creation: network blue:n exists", http.StatusInternalServerError)
			}))
			got, err := client.Put(t.Context(), dial(t, client.Config{URLs: []string{s.URL}, Patience: time.Hour}), contivmodel.NetworkKind(),
				&contivmodel.Network{TenantName: "blue", NetworkName: "n", Subnet: "10.1.1.0/24"})
			s.Close()
			if (err != nil) != (fails || !lost) {
				t.Errorf("there: %s, an answer was lost: %t: %v", there, lost, err)
			}
			if err == nil && got.Encap != "vxlan" {
				t.Errorf("%+v, expected what is there", got)
			}
		}
	}
}
