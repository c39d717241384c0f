package dockerd_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/dockerd/dockerdtest"
	"github.com/contiv/netplugin/utils/errs"
)

func newClient(t *testing.T, socket string) *dockerd.Client {
	t.Helper()
	c, err := dockerd.New(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var byValue = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// front is what dockerd.Client and the Engine for tests have in common.
type front interface {
	Networks(context.Context) ([]dockerd.Network, error)
	Network(ctx context.Context, name string) (dockerd.Network, error)
	CreateNetwork(context.Context, dockerd.Network) (string, error)
	RemoveNetwork(ctx context.Context, id string) error
	Endpoints(ctx context.Context, networkID string) ([]string, error)
	Containers(context.Context) ([]dockerd.Container, error)
	PluginName(ctx context.Context, id string) (string, error)
	Watch(ctx context.Context, changed func()) error
}

// eachFront runs a test by the API, and on the Engine itself, so that other tests can rely
// on the Engine alone.
func eachFront(t *testing.T, test func(*testing.T, *dockerdtest.Engine, front)) {
	t.Run("by the API", func(t *testing.T) {
		e := dockerdtest.New(dockerdtest.Plugin{})
		test(t, e, newClient(t, dockerdtest.Serve(t, e)))
	})
	t.Run("itself", func(t *testing.T) {
		e := dockerdtest.New(dockerdtest.Plugin{})
		test(t, e, e)
	})
}

func TestNetworks(t *testing.T) {
	eachFront(t, func(t *testing.T, e *dockerdtest.Engine, c front) {
		want := dockerd.Network{
			Name: "net1/blue", Driver: "netplugin", IPAMDriver: "netplugin", IPv6: true, Internal: true,
			Subnets: []dockerd.Subnet{
				{Prefix: netip.MustParsePrefix("10.1.1.0/24"), Gateway: netip.MustParseAddr("10.1.1.254")},
				{Prefix: netip.MustParsePrefix("2001:db8::/100")},
			},
			Options: map[string]string{"tenant": "blue"}, IPAMOptions: map[string]string{"network": "net1"}, Labels: map[string]string{"a": "b"},
		}
		id, err := c.CreateNetwork(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		want.ID = id
		all, err := c.Networks(t.Context())
		bridge := dockerd.Network{ID: "bridge0", Name: "bridge", Driver: "bridge", IPAMDriver: "default"}
		if diff := cmp.Diff([]dockerd.Network{bridge, want}, all, byValue); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		if got, err := c.Network(t.Context(), id); err != nil || !cmp.Equal(got, want, byValue) {
			t.Errorf("by its id: %+v, %v", got, err)
		}
		if _, err := c.CreateNetwork(t.Context(), want); !errs.Is(err, errs.Exists) {
			t.Errorf("a second time: %v, want an error of kind exists", err)
		}
		e.Start(dockerd.Container{ID: "c1", Name: "web", Attachments: []dockerd.Attachment{{NetworkID: id, NetworkName: want.Name, EndpointID: "ep1"}}})
		if eps, err := c.Endpoints(t.Context(), id); err != nil || !cmp.Equal(eps, []string{"ep1"}) {
			t.Errorf("endpoints %v, %v", eps, err)
		}
		if err := c.RemoveNetwork(t.Context(), id); !errs.Is(err, errs.InUse) {
			t.Errorf("removed with a container in it: %v, want an error of kind in use", err)
		}
		e.Stop("web")
		for range 2 { // the second time it is gone
			if err := c.RemoveNetwork(t.Context(), id); err != nil {
				t.Errorf("remove: %v", err)
			}
		}
		if _, err := c.Network(t.Context(), id); !errs.Is(err, errs.NotFound) {
			t.Errorf("after its removal: %v, want an error of kind not found", err)
		}
		if eps, err := c.Endpoints(t.Context(), id); err != nil || len(eps) > 0 {
			t.Errorf("endpoints of a network that is gone: %v, %v", eps, err)
		}
	})
}

func TestContainers(t *testing.T) {
	eachFront(t, func(t *testing.T, e *dockerdtest.Engine, c front) {
		want := dockerd.Container{
			ID: "c1", Name: "web", Labels: map[string]string{"tier": "front"},
			Attachments: []dockerd.Attachment{{NetworkID: "n1", NetworkName: "net1", EndpointID: "ep1", IPv4: netip.MustParseAddr("10.1.1.1")}},
		}
		e.Start(want)
		got, err := c.Containers(t.Context())
		if diff := cmp.Diff([]dockerd.Container{want}, got, byValue); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestPluginName(t *testing.T) {
	eachFront(t, func(t *testing.T, e *dockerdtest.Engine, c front) {
		e.Install("0123", "contiv/v2plugin:latest")
		if name, err := c.PluginName(t.Context(), "0123"); err != nil || name != "contiv/v2plugin:latest" {
			t.Errorf("%q, %v", name, err)
		}
		if _, err := c.PluginName(t.Context(), "4567"); !errs.Is(err, errs.NotFound) {
			t.Errorf("an unknown plugin: %v, want an error of kind not found", err)
		}
	})
}

// TestWatch: changed is called when the watch begins, and after every change.
func TestWatch(t *testing.T) {
	eachFront(t, func(t *testing.T, e *dockerdtest.Engine, c front) {
		ctx, cancel := context.WithCancel(t.Context())
		told, ended := make(chan struct{}), make(chan error)
		go func() { ended <- c.Watch(ctx, func() { told <- struct{}{} }) }()
		<-told
		for range 2 {
			e.Notify()
			<-told
		}
		cancel()
		for {
			select {
			case <-told:
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the watch ended with %v", err)
				}
				return
			}
		}
	})
}

// TestNoEngine: an Engine that does not run is unavailable, and the error says what to do.
func TestNoEngine(t *testing.T) {
	c := newClient(t, filepath.Join(t.TempDir(), "docker.sock"))
	for name, ask := range map[string]func() error{
		"networks":   func() error { _, err := c.Networks(t.Context()); return err },
		"containers": func() error { _, err := c.Containers(t.Context()); return err },
		"create":     func() error { _, err := c.CreateNetwork(t.Context(), dockerd.Network{Name: "n"}); return err },
		"remove":     func() error { return c.RemoveNetwork(t.Context(), "n") },
		"watch":      func() error { return c.Watch(t.Context(), func() { t.Error("told of changes") }) },
	} {
		if err := ask(); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "is dockerd running?") {
			t.Errorf("%s: %v, want an error of kind unavailable that asks whether dockerd runs", name, err)
		}
	}
}

// TestDownEngine: one that refuses to serve is unavailable as well.
func TestDownEngine(t *testing.T) {
	eachFront(t, func(t *testing.T, e *dockerdtest.Engine, c front) {
		e.SetDown(errs.New(errs.Unavailable, "the Engine is starting"))
		if _, err := c.Networks(t.Context()); !errs.Is(err, errs.Unavailable) {
			t.Errorf("%v, want an error of kind unavailable", err)
		}
		e.SetDown(nil)
		if _, err := c.Networks(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
