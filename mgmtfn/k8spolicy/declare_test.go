package k8spolicy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/drivers"
)

// steps is a driver that looks at what is declared after every single step.
type steps struct {
	Result
	look func(step string)
}

func (s *steps) Apply(o drivers.Object) {
	switch o := o.(type) {
	case drivers.PolicyRuleSet:
		s.Sets[o.ID] = o
	case drivers.PolicyPeer:
		s.Peers[PeerAddr{o.Tenant, o.Addr}] = o.Class
	case drivers.EndpointPolicy:
		s.EndpointPolicies[o.EndpointID] = o
	}
	s.look(fmt.Sprintf("%+v", o))
}

func (s *steps) Delete(k drivers.Kind, id string) {
	switch k {
	case drivers.KindPolicyRuleSet:
		delete(s.Sets, id)
	case drivers.KindEndpointPolicy:
		delete(s.EndpointPolicies, id)
	case drivers.KindPolicyPeer:
		maps.DeleteFunc(s.Peers, func(at PeerAddr, class uint32) bool {
			return drivers.PolicyPeer{Tenant: at.Tenant, Addr: at.Addr, Class: class}.Key().ID == id
		})
	}
	s.look(fmt.Sprint("delete ", k, " ", id))
}

// decisions are those of all pods about connections with all of some addresses, but their own,
// by the pod with the address: pods do not reach themselves through the switch.
func (r Result) decisions(peers map[netip.Addr]string) map[string]bool {
	out := map[string]bool{}
	for id, g := range r.EndpointPolicies {
		for a, owner := range peers {
			if owner == id {
				continue
			}
			for _, proto := range []uint8{protoTCP, protoUDP} {
				for _, port := range []uint16{53, 80, 81, 90} {
					at := fmt.Sprint(id, " ", a, " ", proto, " ", port)
					out["in "+at] = g.In == "" || r.allows(g.In, a, proto, port)
					out["out "+at] = g.Out == "" || r.allows(g.Out, a, proto, port)
				}
			}
		}
	}
	return out
}

// While one thing changes, whether a policy, a pod's labels and ports, or a namespace's labels,
// no connection is denied that is allowed before and after, and none allowed that is denied
// before and after, however the steps reach the switch. Only a pod that a policy comes to select,
// or no longer selects, while its set changes for others as well depends on these being one
// bundle.
func TestDeclareStepByStep(t *testing.T) {
	moved, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := generator{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))}
		c := g.cluster(9, 4)
		w, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		pods, peers := map[string]Key{}, map[netip.Addr]string{netip.MustParseAddr("192.0.2.1"): ""}
		for i, p := range c.pods {
			peers[ParsePod(p).IPs[i%2]] = p.Name
			if i < 4 {
				pods[p.Name] = Key{p.Namespace, p.Name}
			}
		}
		before := w.Compile(pods)
		to := &steps{Result: Result{maps.Clone(before.EndpointPolicies), maps.Clone(before.Sets), maps.Clone(before.Peers), nil}}
		for range 12 {
			what := g.changeOne(t, c, w)
			for again := true; again; again = w.Coarser() {
				now := w.Compile(pods)
				was, is := before.decisions(peers), now.decisions(peers)
				selected := map[string]bool{}
				for id, p := range now.EndpointPolicies {
					selected[id] = strings.Contains(what, "policy") && before.EndpointPolicies[id] != p
				}
				to.look = func(step string) {
					for at, allowed := range to.decisions(peers) {
						old, new := was[at], is[at]
						compared++
						if id := strings.Fields(at)[1]; old == new && allowed != old && !selected[id] {
							t.Fatalf("%s: %s: allowed %t, before and after %t, after the step %s", what, at, allowed, old, step)
						}
					}
				}
				if now.movesPeers(before) {
					moved++
				}
				now.Declare(to, before)
				before = now
			}
		}
	})
	if moved < 50 || compared < 100000 {
		t.Errorf("peers moved %d times, %d decisions: the test says little", moved, compared)
	}
}

// changeOne changes one object of a cluster, and says which.
func (g generator) changeOne(t *rapid.T, c cluster, w *ClusterState) string {
	i := g.IntN(len(c.pods))
	switch g.IntN(5) {
	case 0, 1:
		c.pods[i] = g.pod(c.pods[i].Namespace, i+1)
		w.SetPod(ParsePod(c.pods[i]))
		return "pod " + c.pods[i].Name
	case 2:
		n := *c.namespaces[i%3]
		n.Labels = g.labels()
		c.namespaces[i%3] = &n
		w.SetNamespace(ParseNamespace(&n))
		return "namespace " + n.Name
	case 3:
		old := c.policies[i%4]
		w.RemovePolicy(Key{old.Namespace, old.Name})
		return "without policy " + old.Name
	}
	p := g.policy(pick(g, "x", "y", "z"), 10*i)
	parsed, err := ParsePolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	w.SetPolicy(parsed)
	return "policy " + p.Name
}
