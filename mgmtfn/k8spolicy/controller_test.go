package k8spolicy

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	kubetest "k8s.io/client-go/tools/cache/testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// driver keeps the driver's promises, and checks that no endpoint policy ever refers to a set that
// is not there: its pod would be cut off.
type driver struct {
	t        *testing.T
	mu       sync.Mutex
	state    Result
	pods     map[string]string
	released bool
	changed  signal.Signal
}

func newDriver(t *testing.T, pods map[string]string) *driver {
	return &driver{t: t, pods: pods, state: Result{map[string]drivers.EndpointPolicy{}, map[string]drivers.PolicyRuleSet{}, map[PeerAddr]uint32{}, nil}}
}

func (d *driver) with(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	for _, g := range d.state.EndpointPolicies {
		for _, set := range []string{g.In, g.Out} {
			if _, ok := d.state.Sets[set]; !ok && set != "" {
				d.t.Errorf("guard %+v refers to a set that is not there", g)
			}
		}
	}
	d.changed.Broadcast()
}

func (d *driver) Apply(o drivers.Object) {
	d.with(func() {
		switch o := o.(type) {
		case drivers.PolicyRuleSet:
			d.state.Sets[o.ID] = o
		case drivers.PolicyPeer:
			d.state.Peers[PeerAddr{o.Tenant, o.Addr}] = o.Class
		case drivers.EndpointPolicy:
			d.state.EndpointPolicies[o.EndpointID] = o
		default:
			d.t.Errorf("%+v is none of its kinds", o)
		}
	})
}

func (d *driver) Delete(k drivers.Kind, id string) {
	d.with(func() {
		switch k {
		case drivers.KindPolicyRuleSet:
			delete(d.state.Sets, id)
		case drivers.KindPolicyPeer:
			for at, class := range d.state.Peers {
				if (drivers.PolicyPeer{Tenant: at.Tenant, Addr: at.Addr, Class: class}).Key().ID == id {
					delete(d.state.Peers, at)
				}
			}
		case drivers.KindEndpointPolicy:
			delete(d.state.EndpointPolicies, id)
		default:
			d.t.Errorf("%s is of none of its kinds", id)
		}
	})
}

func (d *driver) Synced(s drivers.Source) {
	d.with(func() { d.released = d.released || s == drivers.SourcePolicies })
}

func (d *driver) Attachments() (out []drivers.Attachment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, pod := range d.pods {
		out = append(out, drivers.Attachment{EndpointID: id, Pod: pod})
	}
	return append(out, drivers.Attachment{EndpointID: "no pod"})
}

// until waits until what is declared passes a test.
func (d *driver) until(what string, ok func(Result) bool) {
	d.t.Helper()
	patience := time.After(eventually.Scaled(60 * time.Second))
	for {
		d.mu.Lock()
		done, changed := ok(d.state), d.changed.Next()
		d.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-patience:
			d.t.Fatalf("%s: %+v", what, d.state)
		}
	}
}

type server struct {
	pods, namespaces, policies *kubetest.FakeControllerSource
}

func newServer() server {
	s := server{kubetest.NewFakeControllerSource(), kubetest.NewFakeControllerSource(), kubetest.NewFakeControllerSource()}
	s.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	return s
}

func run(t *testing.T, s server, d *driver) *Controller {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	return start(t, New(Config{Pods: s.pods, Namespaces: s.namespaces, NetworkPolicies: s.policies, Driver: d, Patience: time.Minute, Log: log}))
}

func start(t *testing.T, c *Controller) *Controller {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

func podObject(name string, uid types.UID, ip string, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: uid, Labels: labels}}
	if ip != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	return p
}

func fromApp(name, app string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}}
	p.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}}}
	return p
}

// What is declared follows policies, labels, addresses and ports, as they come and go.
func TestControllerFollows(t *testing.T) {
	api, d := newServer(), newDriver(t, map[string]string{"e1": "x/web"})
	api.pods.Add(podObject("web", "u1", "10.1.1.1", map[string]string{"app": "web"}))
	c := run(t, api, d)
	guarded := func(id string, want bool, peers ...string) func(Result) bool {
		return func(r Result) bool {
			g, ok := r.EndpointPolicies[id]
			var got []string
			for _, a := range r.Sets[g.In].Allows {
				got = append(got, r.peersOf("default", a)...)
			}
			return ok && (g.In != "") == want && g.Out == "" && slices.Equal(got, peers)
		}
	}
	d.until("no policy", guarded("e1", false))
	api.policies.Add(fromApp("p", "db"))
	d.until("a policy that lets nobody in yet", guarded("e1", true))
	api.pods.Add(podObject("db", "u2", "10.1.1.2", map[string]string{"app": "db"}))
	d.until("a peer", guarded("e1", true, "10.1.1.2"))
	api.pods.Modify(podObject("db", "u2", "10.1.1.3", map[string]string{"app": "db"}))
	d.until("its address changes", guarded("e1", true, "10.1.1.3"))
	api.pods.Modify(podObject("db", "u2", "10.1.1.3", map[string]string{"app": "other"}))
	d.until("its label changes", guarded("e1", true))
	api.policies.Modify(fromApp("p", "other"))
	d.until("the policy changes", guarded("e1", true, "10.1.1.3"))
	d.with(func() { d.pods["e2"] = "x/db" })
	c.PortsChanged()
	d.until("another pod is attached", guarded("e2", false))
	api.pods.Modify(podObject("web", "u1", "10.1.1.1", nil))
	d.until("the pod is no longer selected", guarded("e1", false))
	d.with(func() { delete(d.pods, "e1") })
	c.PortsChanged()
	d.until("it is detached", func(r Result) bool { return len(r.EndpointPolicies) == 1 && len(r.Sets) == 0 })
	api.policies.Delete(fromApp("p", "other"))
	d.until("all is released", func(Result) bool { return d.released })
	if err := c.Ready(); err != nil {
		t.Error(err)
	}
}

// A policy that cannot be read in full isolates all the same.
func TestControllerReadsWhatItCan(t *testing.T) {
	api, d := newServer(), newDriver(t, map[string]string{"e1": "x/web"})
	api.pods.Add(podObject("web", "u1", "10.1.1.1", map[string]string{"app": "web"}))
	p := fromApp("p", "db")
	p.Spec.Ingress[0].From[0].PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
	p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}})
	api.policies.Add(p)
	run(t, api, d)
	d.until("isolated", func(r Result) bool { return r.EndpointPolicies["e1"].In != "" })
	d.mu.Lock()
	got := d.state.Sets[d.state.EndpointPolicies["e1"].In].Allows
	d.mu.Unlock()
	want := []ofnet.Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Name: "x/p ingress[1]"}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// A pod that is added waits until it is subject to its policies; it is the very pod.
func TestAwait(t *testing.T) {
	api, d := newServer(), newDriver(t, map[string]string{})
	api.policies.Add(fromApp("p", "db"))
	c := run(t, api, d)
	d.until("synced", func(Result) bool { return d.released })
	d.with(func() { d.pods["e1"] = "x/web" })
	awaited := make(chan error, 1)
	go func() { awaited <- c.Await(t.Context(), "x", "web", "u2") }()
	api.pods.Add(podObject("web", "u1", "", nil)) // of that name before
	d.until("known by name", func(r Result) bool { _, ok := r.EndpointPolicies["e1"]; return ok })
	select {
	case err := <-awaited:
		t.Fatalf("another pod was taken for it: %v", err)
	default:
	}
	api.pods.Modify(podObject("web", "u2", "", map[string]string{"app": "web"}))
	if err := <-awaited; err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.EndpointPolicies["e1"].In == "" {
		t.Error("it is not held to the policy")
	}
}

// A pod that its kubelet has from a file is awaited by the UID of the file.
func TestAwaitMirrorPod(t *testing.T) {
	api, d := newServer(), newDriver(t, map[string]string{})
	c := run(t, api, d)
	d.until("synced", func(Result) bool { return d.released })
	d.with(func() { d.pods["e1"] = "x/etcd" })
	p := podObject("etcd", "u-api", "", nil)
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "u-file"}
	api.pods.Add(p)
	if err := c.Await(t.Context(), "x", "etcd", "u-file"); err != nil {
		t.Error(err)
	}
}

func TestAwaitEnds(t *testing.T) {
	api, d := newServer(), newDriver(t, nil)
	c := run(t, api, d)
	d.until("synced", func(Result) bool { return d.released })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Await(ctx, "x", "unknown", "u"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("%v", err)
	}
}

// unreachable is an API server that does not answer.
type unreachable struct{}

func (unreachable) List(metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.New("refused")
}

func (unreachable) Watch(metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("refused")
}

var _ cache.ListerWatcher = unreachable{}

// Without an API server nothing ends and nothing changes; new pods wait, or come up if that
// is wanted, and readiness says what is amiss.
func TestAPIServerUnreachable(t *testing.T) {
	d := newDriver(t, map[string]string{"e1": "x/web"})
	log := logrus.New()
	log.SetOutput(io.Discard)
	for _, open := range []bool{true, false} {
		c := start(t, New(Config{Pods: unreachable{}, Namespaces: unreachable{}, NetworkPolicies: unreachable{}, Driver: d, Patience: time.Millisecond, StartWithout: open, Log: log}))
		switch err := c.Await(t.Context(), "x", "web", "u1"); {
		case open && err != nil:
			t.Error(err)
		case !open && (!errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "pod x/web: the API server's lists of pods")):
			t.Errorf("a pod that has to wait: %v", err)
		}
		if err := c.Ready(); !errs.Is(err, errs.Unavailable) || open != strings.Contains(err.Error(), "not enforced") {
			t.Errorf("open %t, ready: %v", open, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.released || len(d.state.EndpointPolicies) != 0 {
		t.Errorf("released %t, declared %+v", d.released, d.state)
	}
}
