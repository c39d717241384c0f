package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetest "k8s.io/client-go/tools/cache/testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// driver notes when services are released.
type driver struct {
	*fakedriver.Driver
	released chan struct{}
}

func (d driver) Synced(s drivers.Source) {
	d.Driver.Synced(s)
	if s == drivers.SourceServices {
		close(d.released)
	}
}

type apiServer struct {
	services, slices, nodes *kubetest.FakeControllerSource
}

func newAPIServer() apiServer {
	return apiServer{kubetest.NewFakeControllerSource(), kubetest.NewFakeControllerSource(), kubetest.NewFakeControllerSource()}
}

func watch(t *testing.T, api apiServer) (*Watcher, driver) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	d := driver{fakedriver.New(), make(chan struct{})}
	w, err := New(Config{HostLabel: "n1", NodeName: "n1", Services: api.services, EndpointSlices: api.slices, Nodes: api.nodes, Driver: d, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(objdb.Batch{Snapshot: true})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w, d
}

func (d driver) expect(t *testing.T, what, want string) {
	t.Helper()
	got := ""
	for range 3000 {
		got = ""
		all := d.State().Services
		for _, key := range []string{"default/kubernetes", "shop/web", "shop/web" + externalSuffix, "shop/other"} {
			if s, ok := all[key]; ok {
				got += text([]drivers.Service{s})
			}
		}
		if got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: %s", what, cmp.Diff(want, got))
}

func event(t *testing.T, key string, v any) objdb.Event {
	t.Helper()
	if v == nil {
		return objdb.Event{KV: objdb.KV{Key: key}, Deleted: true}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return objdb.Event{KV: objdb.KV{Key: key, Value: b}}
}

// Objects of the API server and of Contiv come, change and go in any order.
func TestWatcher(t *testing.T) {
	const head = "shop/web [10.96.0.10 fd00:96::10]\n http 6:80"
	api := newAPIServer()
	api.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "192.168.2.10"}, {Type: corev1.NodeHostName, Address: "n1"},
	}}})
	api.services.Add(service())
	w, d := watch(t, api)
	<-d.released
	d.expect(t, "a Service without pods", head+"\n")

	pods := slice("s", discoveryv1.AddressTypeIPv4, pod("20.1.1.1", "a", "n1", "ready"))
	api.slices.Add(pods)
	net := state.Network{ID: "net.default", Tenant: "default"}
	ep := state.Endpoint{ID: "net.default-a", NetID: net.ID, IPAddress: "20.1.1.1", HomingHost: "n1", EPCommonName: "a"}
	w.Apply(objdb.Batch{Snapshot: true, Events: []objdb.Event{event(t, state.EndpointRoot+ep.ID, ep)}})
	w.Apply(objdb.Batch{Events: []objdb.Event{event(t, state.NetworkRoot+net.ID, net)}})
	d.expect(t, "its pod", head+" 20.1.1.1:8080@default,local\n")
	finds(t, w)

	ep.HomingHost = "n2"
	w.Apply(objdb.Batch{Events: []objdb.Event{event(t, state.EndpointRoot+ep.ID, ep)}})
	d.expect(t, "the pod is elsewhere", head+" 20.1.1.1:8080@default\n")
	w.Apply(objdb.Batch{Events: []objdb.Event{event(t, state.EndpointRoot+ep.ID, nil)}})
	d.expect(t, "its endpoint has gone", head+"\n")

	moved := pods.DeepCopy()
	moved.Endpoints[0].Addresses = []string{"192.168.2.11"}
	api.slices.Modify(moved)
	api.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.2.11"}}}})
	d.expect(t, "on a node that joins", head+" 192.168.2.11:8080\n")

	local := service(func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
		s.Spec.ExternalIPs = []string{"198.51.100.7"}
	})
	api.services.Modify(local)
	d.expect(t, "two declarations", "shop/web [10.96.0.10 fd00:96::10] local\n http 6:80\nshop/web+external [198.51.100.7]\n http 6:80 192.168.2.11:8080\n")

	// What happens while the watch is broken is found by the next list.
	api.slices.DeleteDropWatch(moved)
	api.slices.ResetWatch()
	d.expect(t, "the slice has gone", "shop/web [10.96.0.10 fd00:96::10] local\n http 6:80\nshop/web+external [198.51.100.7]\n http 6:80\n")
	api.services.Delete(local)
	d.expect(t, "the Service has gone", "")
}

// Without the API server nothing is declared and nothing of before is given up; when it
// comes, everything is.
func TestWatcherWaits(t *testing.T) {
	api := newAPIServer()
	api.services.ListError = errors.New("connection refused")
	api.services.Add(service())
	_, d := watch(t, api)
	select {
	case <-d.released:
		t.Fatal("services are released although none could be read")
	default:
	}
	if n := len(d.State().Services); n != 0 {
		t.Errorf("%d services are declared", n)
	}
}

// finds: a Service is found by its name and its addresses, with the providers that a tenant's
// pods reach at a port.
func finds(t *testing.T, w *Watcher) {
	t.Helper()
	for _, tc := range []struct {
		q    flowapi.ServiceQuestion
		want string
	}{
		{flowapi.ServiceQuestion{Name: "shop/web", Tenant: "default", Proto: "tcp", Port: 80}, "shop/web [10.96.0.10 fd00:96::10] [20.1.1.1:8080]"},
		{flowapi.ServiceQuestion{Address: netip.MustParseAddr("10.96.0.10"), Tenant: "default", Proto: "tcp", Port: 80}, "shop/web [10.96.0.10 fd00:96::10] [20.1.1.1:8080]"},
		{flowapi.ServiceQuestion{Name: "shop/web", Tenant: "blue", Proto: "tcp", Port: 80}, "shop/web [10.96.0.10 fd00:96::10] []"},
		{flowapi.ServiceQuestion{Name: "shop/web", Tenant: "default", Proto: "udp", Port: 80}, "shop/web [10.96.0.10 fd00:96::10] []"},
		{flowapi.ServiceQuestion{Name: "shop/none", Proto: "tcp", Port: 80}, " [] []"},
		{flowapi.ServiceQuestion{Address: netip.MustParseAddr("10.96.0.11"), Proto: "tcp", Port: 80}, " [] []"},
	} {
		a, err := w.Find(tc.q)
		if got := fmt.Sprintf("%s %v %v", a.Name, a.Addresses, a.Providers); err != nil || got != tc.want {
			t.Errorf("%+v: %s (%v), want %s", tc.q, got, err, tc.want)
		}
	}
	for _, q := range []flowapi.ServiceQuestion{{}, {Proto: "tcp"}, {Name: "shop/web"}, {Name: "x", Address: netip.MustParseAddr("::1"), Proto: "tcp"}} {
		if _, err := w.Find(q); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
