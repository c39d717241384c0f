package k8spolicy

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/state/flowapi"
)

// protocols are the numbers of those of questions.
var protocols = map[corev1.Protocol]uint8{"": 1, corev1.ProtocolTCP: protoTCP, corev1.ProtocolUDP: protoUDP, corev1.ProtocolSCTP: protoSCTP}

// What policies compile to agrees with what they say, in clusters of all sorts.
func TestCompileAgreesWithReferenceModel(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := generator{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
		c := g.cluster(12, g.IntN(8))
		w, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]Key{}
		for _, p := range c.pods {
			pods[p.Namespace+"/"+p.Name] = Key{p.Namespace, p.Name}
		}
		r := w.Compile(pods)
		for range 60 {
			q := g.question(c)
			check := func(pod *corev1.Pod, set string, peer netip.Addr, egress bool) {
				want := c.allowed(pod, egress, q)
				verdicts[want]++
				got := set == "" || r.allows(set, peer, protocols[q.proto], uint16(q.port))
				key := Key{pod.Namespace, pod.Name}
				if p, known := w.Pod(key); known { // whoever explains it says the same
					d := w.decide(p, egress, connection(egress, peer, protocols[q.proto], uint16(q.port)))
					if explained := d == nil || d.Verdict == flowapi.Allowed; explained != want {
						t.Fatalf("allowed %t, explained by %+v", want, d)
					}
				}
				if got != want {
					t.Fatalf("allowed %t, expected %t: pod %s/%s %v, egress %t, %+v\nset %+v", got, want, pod.Namespace, pod.Name, pod.Labels, egress, q, r.Sets[set])
				}
			}
			if p := q.from.pod; p != nil {
				check(p, r.EndpointPolicies[p.Namespace+"/"+p.Name].Out, q.to.addr, true)
			}
			if p := q.to.pod; p != nil {
				check(p, r.EndpointPolicies[p.Namespace+"/"+p.Name].In, q.from.addr, false)
			}
		}
	})
	if verdicts[true] < 100 || verdicts[false] < 100 {
		t.Errorf("denied %d, allowed %d: the test says little", verdicts[false], verdicts[true])
	}
}

// A cluster state that has seen everything change compiles to what a fresh one does: nothing
// depends on the order, and nothing is remembered that no longer holds.
func TestCompileForgetsWhatWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generator{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))}
		c := g.cluster(10, 5)
		w, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]Key{"e1": {"x", "pod1"}, "e2": {"y", "pod2"}, "e3": {"z", "pod3"}, "e4": {"z", "nobody"}}
		for i, p := range c.pods {
			pods[string(rune('a'+i))] = Key{p.Namespace, p.Name}
		}
		for range 20 {
			w.Compile(pods)
			switch i := g.IntN(len(c.pods)); g.IntN(5) {
			case 0:
				w.RemovePod(Key{c.pods[i].Namespace, c.pods[i].Name})
				c.pods[i] = g.pod(c.pods[i].Namespace, i+1)
				w.SetPod(ParsePod(c.pods[i]))
			case 1:
				c.pods[i] = g.pod(c.pods[i].Namespace, i+1)
				w.SetPod(ParsePod(c.pods[i]))
			case 2:
				n := *c.namespaces[i%3]
				n.Labels = g.labels()
				c.namespaces[i%3] = &n
				w.SetNamespace(ParseNamespace(&n))
			case 3:
				old := c.policies[i%5]
				w.RemovePolicy(Key{old.Namespace, old.Name})
				c.policies[i%5] = g.policy(pick(g, "x", "y", "z"), i%5)
				fallthrough
			case 4:
				p, err := ParsePolicy(c.policies[i%5])
				if err != nil {
					t.Fatal(err)
				}
				w.SetPolicy(p)
			}
		}
		fresh, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		w.Compile(pods) // after which policies that are gone tell no pods apart
		got, want := w.Compile(pods), fresh.Compile(pods)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Result{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Pods that the same policies select share a set, and the addresses of other tenants'
// pods do not count.
func TestCompileSharesSetsWithinATenant(t *testing.T) {
	w := NewClusterState()
	w.SetNamespace(Namespace{Name: "x"})
	w.SetNamespace(Namespace{Name: "red", Tenant: "red"})
	pod := func(namespace, name, tenant, ip string) {
		w.SetPod(Pod{Key: Key{namespace, name}, Tenant: tenant, IPs: []netip.Addr{netip.MustParseAddr(ip)}})
	}
	pod("x", "a", "", "10.1.1.1")
	pod("x", "b", "default", "10.1.1.2")
	pod("x", "c", "blue", "10.1.1.3")
	pod("red", "d", "", "10.1.1.4")
	g := generator{rand.New(rand.NewPCG(1, 1))}
	p := g.policy("x", 1)
	p.Spec = networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &p.Spec.PodSelector}}}}}
	p.Spec.Ingress[0].From[0].NamespaceSelector.Reset()
	policy, err := ParsePolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	w.SetPolicy(policy)
	r := w.Compile(map[string]Key{"a": {"x", "a"}, "b": {"x", "b"}, "c": {"x", "c"}, "d": {"red", "d"}, "e": {"x", "unknown"}})
	if a, b, c := r.EndpointPolicies["a"].In, r.EndpointPolicies["b"].In, r.EndpointPolicies["c"].In; a != b || a == c || len(r.Sets) != 2 {
		t.Errorf("guards %+v", r.EndpointPolicies)
	}
	if r.EndpointPolicies["d"].In != "" || r.EndpointPolicies["e"].In != "" || r.EndpointPolicies["a"].Out != "" {
		t.Errorf("guards %+v", r.EndpointPolicies)
	}
	got := r.peersOf("default", r.Sets[r.EndpointPolicies["a"].In].Allows[0])
	if diff := cmp.Diff([]string{"10.1.1.1", "10.1.1.2"}, got); diff != "" {
		t.Error(diff)
	}
}

// Blocks are what they say, no address twice.
func TestSubtract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := func(name string) netip.Prefix {
			a := netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, name)})
			return netip.PrefixFrom(a, rapid.IntRange(22, 32).Draw(t, name+" bits")).Masked()
		}
		p := prefix("cidr")
		except := make([]netip.Prefix, rapid.IntRange(0, 4).Draw(t, "n"))
		for i := range except {
			except[i] = prefix("except")
		}
		left, err := subtract(p, except)
		if err != nil || left == nil {
			t.Fatalf("%s without %v: %v, %v", p, except, left, err)
		}
		for i := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			want := 0
			if p.Contains(a) {
				want = 1
			}
			for _, e := range except {
				if e.Contains(a) {
					want = 0
				}
			}
			n := 0
			for _, l := range left {
				if l.Contains(a) {
					n++
				}
			}
			if n != want {
				t.Fatalf("%s is in %d of %v, %s without %v", a, n, left, p, except)
			}
		}
	})
}
