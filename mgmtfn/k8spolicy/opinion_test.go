package k8spolicy

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// opinion is what others think of a cluster's policies: the evaluator of Cyclonus, written
// for the conformance of network plugins, has nothing to do with ours.
type opinion struct {
	cluster
	policies *matcher.Policy
}

func (c cluster) opinion() opinion {
	var policies []*networkingv1.NetworkPolicy
	for _, p := range c.policies {
		p = p.DeepCopy()
		if len(p.Spec.PolicyTypes) == 0 { // as the API server fills it in
			p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
			if len(p.Spec.Egress) > 0 {
				p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
			}
		}
		policies = append(policies, p)
	}
	return opinion{c, matcher.BuildNetworkPolicies(false, policies)}
}

// allowed is the opinion's answer to what cluster.allowed is asked.
func (o opinion) allowed(egress bool, q question) bool {
	traffic := matcher.Traffic{Source: o.peer(q.from), Destination: o.peer(q.to), ResolvedPort: int(q.port), Protocol: q.proto}
	// It takes one name of a port; there may be several, each of which may allow.
	names := []string{""}
	if q.to.pod != nil && !outside(q.to.pod) {
		for _, name := range []string{"web", "dns"} {
			if named(q.to.pod, name, q.proto) == q.port {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		traffic.ResolvedPortName = name
		if o.policies.IsIngressOrEgressAllowed(&traffic, !egress).IsAllowed() {
			return true
		}
	}
	return false
}

func (o opinion) peer(v visitor) *matcher.TrafficPeer {
	p := &matcher.TrafficPeer{IP: v.addr.String()}
	if v.pod == nil || outside(v.pod) {
		return p
	}
	p.Internal = &matcher.InternalPeer{PodLabels: v.pod.Labels, Namespace: v.pod.Namespace}
	for _, n := range o.namespaces {
		if n.Name == v.pod.Namespace {
			p.Internal.NamespaceLabels = n.Labels
		}
	}
	return p
}

// withoutNotIn replaces the operator of which Cyclonus thinks that it does not match where
// there is no such label. (Kubernetes thinks otherwise, see labels.Requirement.Matches.)
func (c cluster) withoutNotIn() {
	replace := func(s *metav1.LabelSelector) {
		if s == nil {
			return
		}
		for i := range s.MatchExpressions {
			if e := &s.MatchExpressions[i]; e.Operator == metav1.LabelSelectorOpNotIn {
				e.Operator, e.Values = metav1.LabelSelectorOpDoesNotExist, nil
			}
		}
	}
	peers := func(all []networkingv1.NetworkPolicyPeer) {
		for _, p := range all {
			replace(p.PodSelector)
			replace(p.NamespaceSelector)
		}
	}
	for _, p := range c.policies {
		replace(&p.Spec.PodSelector)
		for _, r := range p.Spec.Ingress {
			peers(r.From)
		}
		for _, r := range p.Spec.Egress {
			peers(r.To)
		}
	}
}

// opinions is how many random sets of policies are compared.
func opinions() int {
	if os.Getenv("CONTIV_LONG") != "" {
		return 20_000
	}
	return 2000
}

// TestSecondOpinion: what random policies compile to, and what our reference model says
// of them, is what the evaluator of Cyclonus says.
func TestSecondOpinion(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range opinions() {
		g := generator{rand.New(rand.NewPCG(uint64(seed), 7))}
		c := g.cluster(12, 1+g.IntN(8))
		c.withoutNotIn()
		w, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]Key{}
		for _, p := range c.pods {
			pods[p.Namespace+"/"+p.Name] = Key{p.Namespace, p.Name}
		}
		r, o := w.Compile(pods), c.opinion()
		for range 40 {
			q := g.question(c)
			check := func(pod *corev1.Pod, set string, peer netip.Addr, egress bool) {
				want := o.allowed(egress, q)
				verdicts[want]++
				got := set == "" || r.allows(set, peer, protocols[q.proto], uint16(q.port))
				if model := c.allowed(pod, egress, q); got != want || model != want {
					t.Fatalf("seed %d: allowed %t, by the model %t, expected %t: pod %s/%s %v, egress %t, %+v\nset %+v", seed, got, model, want, pod.Namespace, pod.Name, pod.Labels, egress, q, r.Sets[set])
				}
			}
			if p := q.from.pod; p != nil {
				check(p, r.EndpointPolicies[p.Namespace+"/"+p.Name].Out, q.to.addr, true)
			}
			if p := q.to.pod; p != nil {
				check(p, r.EndpointPolicies[p.Namespace+"/"+p.Name].In, q.from.addr, false)
			}
		}
	}
	if verdicts[true] < 1000 || verdicts[false] < 1000 {
		t.Errorf("denied %d, allowed %d: the test says little", verdicts[false], verdicts[true])
	}
	t.Logf("%d sets of policies: denied %d, allowed %d", opinions(), verdicts[false], verdicts[true])
}
