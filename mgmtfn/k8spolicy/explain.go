package k8spolicy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/judge"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// decide says what policies decide about a connection of a pod that it opens (out) or is asked
// for; nil: none isolates it. Its own host, which may always reach it, is not considered.
func (w *ClusterState) decide(p Pod, out bool, c judge.Connection) *flowapi.Decision {
	at, direction := flowapi.AtDestination, "ingress"
	if out {
		at, direction = flowapi.AtSource, "egress"
	}
	var isolating []string
	tenant := w.tenant(p)
	c.SrcClass, c.DstClass = w.classOf(tenant, c.Src), w.classOf(tenant, c.Dst)
	for _, policy := range w.selecting(p) {
		side := policy.side(out)
		if !side.Isolates {
			continue
		}
		isolating = append(isolating, policy.Key.String())
		s := selection{cluster: w, done: map[ruleKey]found{}, pod: p, tenant: tenant, out: out}
		for i, r := range side.Rules {
			allows := s.rule(ruleKey{policy.Key, out, i, s.tenant}, r)
			if judge.Set(ofnet.PolicyRuleSet{Out: out, Allows: allows}, c) >= 0 {
				return &flowapi.Decision{
					At: at, By: flowapi.ByNetworkPolicy, Policy: policy.Key.String(), Rule: fmt.Sprintf("%s[%d]", direction, i), Verdict: flowapi.Allowed,
				}
			}
		}
	}
	if isolating == nil {
		return nil
	}
	return &flowapi.Decision{At: at, By: flowapi.ByDefault, Policy: strings.Join(isolating, ", "), Verdict: flowapi.Denied}
}

// Explain says what policies decide about a connection of an endpoint of this host: nothing if
// it is no pod's, or none isolates the pod.
func (c *Controller) Explain(q flowapi.PolicyQuestion) ([]flowapi.Decision, error) {
	proto, ok := flowapi.ProtoNumber(q.Proto)
	if !ok || !q.Peer.IsValid() {
		return nil, errs.New(errs.Invalid, "expected a protocol and the address of the peer, got %.40q and %v", q.Proto, q.Peer)
	}
	decisions := []flowapi.Decision{}
	key, ok := podOf(c.cfg.Driver.Attachments(), q.Endpoint)
	if !ok {
		return decisions, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.cluster.Pod(key)
	if !ok {
		return decisions, nil
	}
	if d := c.cluster.decide(p, q.Opens, connection(q.Opens, q.Peer, proto, q.Port)); d != nil {
		decisions = append(decisions, *d)
	}
	return decisions, nil
}

// connection is one with a peer, which is all that policies look at.
func connection(opens bool, peer netip.Addr, proto uint8, port uint16) judge.Connection {
	if opens {
		return judge.Connection{Dst: peer, Proto: proto, DstPort: port}
	}
	return judge.Connection{Src: peer, Proto: proto, DstPort: port}
}

// podOf finds the pod of an endpoint.
func podOf(attachments []drivers.Attachment, endpoint string) (Key, bool) {
	for _, at := range attachments {
		if at.EndpointID == endpoint {
			return keyOf(at.Pod)
		}
	}
	return Key{}, false
}

// keyOf reads namespace/name.
func keyOf(text string) (Key, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return Key{namespace, name}, ok
}

// PodAt names the pod of a tenant with an address, as namespace/name; empty if there is none,
// or it is not known which.
func (c *Controller) PodAt(tenant string, a netip.Addr) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.cluster.podAt(tenant, a); ok {
		return p.Key.Namespace + "/" + p.Key.Name
	}
	return ""
}
