package ovsd

import (
	"strings"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/ovstrace"
	"github.com/contiv/netplugin/state/traceapi"
)

// traceWords describe what it means that a packet matches a flow, by table and by the
// flow's owner: an object's kind, "fixed", or "miss" for the end of the table. %s is the
// object. Flows that are not listed are not mentioned.
var traceWords = map[string]map[string]string{
	"classify": {
		"ep": "sent by endpoint %s", "uplink": "came in by uplink %s",
		"fixed": "malformed, or tagged by a container: not let in",
		"miss":  "nothing is let in there: the port has no endpoint",
	},
	"tunnel":        {"miss": "came through a tunnel from an address that is no host's of the cluster"},
	"tunnel-net":    {"net": "came through the tunnel for network %s", "miss": "came through the tunnel for a network that is not known on this host"},
	"uplink":        {"net": "has the VLAN of network %s", "fixed": "its VLAN is no network's", "miss": "its VLAN is no network's, or the frame is not for this host"},
	"frame":         {"fixed": "containers do not send what only routers and servers say", "miss": "containers send IP and ARP only"},
	"source":        {"fixed": "its source address is not the endpoint's own", "miss": "its source MAC address is not the endpoint's own"},
	"source-nd":     {"fixed": "it speaks for an address that is not the endpoint's own"},
	"neighbor":      {"fixed": "", "miss": "neither IP nor a question about neighbors"},
	"dns-serve":     {"ep": "a name query: the name server of the host has it first"},
	"service":       {"svc": "its destination is service %s"},
	"service-state": {"svc": "a connection to service %s", "miss": "no provider of the service takes it"},
	"service-nat":   {"svc": "a provider of service %s is chosen, and becomes its destination"},
	"service-reply": {"svc": "from a provider of service %s: what belongs to a connection to the service gets the service's address again"},
	"route": {
		"ep": "its destination is endpoint %s", "net": "its destination is the gateway of network %s, which answers",
		"fixed": "no endpoint of the tenant has its destination: routes to the outside are looked through",
		"miss":  "no endpoint of the tenant has its destination address",
	},
	"reach":           {"reach": "it is for a port of the control plane on a host, or for a tunnel outside: containers do not reach these"},
	"external":        {"route": "route %s leads there", "fixed": "its destination is not routed", "miss": "no route leads to its destination"},
	"track":           {"vrf": "tenant %s has rules"},
	"state":           {"vrf": "it belongs to a connection that the rules admit", "fixed": "it answers a packet that the rules admitted"},
	"endpoint-policy": {"endpoint-policy": "endpoint %s is subject to network policies: the connection is tracked"},
	"policy-out":      {"own-node": "pods may talk to their own host"},
	"policy-in":       {"own-node": "a host may talk to its pods"},
	"allow-out":       {"rule-set": "the sender's network policies allow it (%s)", "fixed": "the sender's network policies do not allow it"},
	"allow-in":        {"rule-set": "the receiver's network policies allow it (%s)", "fixed": "the receiver's network policies do not allow it"},
	"policy":          {"fixed": "no rule is about it: allowed"},
	"deny":            {"miss": "denied"},
	"mac":             {"ep": "its destination MAC address is that of endpoint %s", "flood": "its destination MAC address is no endpoint's: to everybody in network %s", "miss": "its destination MAC address is no endpoint's"},
	"switch":          {"fixed": "forwarded by the MAC addresses that the bridge has learned"},
	"uplink-out":      {"miss": "there is no uplink"},
}

// verdicts are the actions of rules in words.
var verdicts = map[string]string{"allow": " allows it", "deny": " denies it", "reject": " rejects it"}

// ownerKind splits an owner of flows into its kind and the object.
func ownerKind(owner string) (kind, object string) {
	kind, object, found := strings.Cut(owner, "/")
	if !found {
		return owner, ""
	}
	if kind == "svc" {
		object, _, _ = strings.Cut(object, "@")
	}
	return kind, object
}

// step describes a flow that the packet matched. The caller holds mu.
func (d *Driver) step(t *tracing, s ovstrace.Step, owner string) traceapi.Step {
	out := traceapi.Step{Feature: ofnet.FeatureOf(s.Cookie), Match: s.Match, Actions: s.Actions}
	if s.Table < len(t.tables) {
		out.Table = t.tables[s.Table]
	}
	kind, object := ownerKind(owner)
	switch {
	case kind == "rule":
		r := d.compiler.Rules[object]
		out.Object = "rule " + ruleName(r)
		out.Words = "rule " + ruleName(r) + verdicts[verdictOf(r)]
		return out
	case out.Feature == "miss", kind == "fixed" && s.Priority == 0 && traceWords[out.Table]["miss"] != "" && isDenied(s):
		kind = "miss"
	case kind == "fixed" && s.Priority == 0 && out.Table != "uplink" && !strings.HasPrefix(out.Table, "allow-"):
		return out // the feature does not apply
	}
	if object != "" {
		out.Object = objectKinds[kind] + object
	}
	out.Words = strings.ReplaceAll(traceWords[out.Table][kind], "%s", object)
	switch {
	case out.Words == "" && hasAction(s, "dec_ttl"):
		out.Words = "to another network: one hop less to live"
	case kind == "fixed" && (out.Table == "classify" || out.Table == "source" || out.Table == "frame") && hasAction(s, "goto_table") && !isDenied(s),
		kind == "vrf" && out.Table == "state" && !hasAction(s, "goto_table"):
		out.Words = ""
	}
	return out
}

// objectKinds are the names of owners' kinds.
var objectKinds = map[string]string{
	"ep": "endpoint ", "net": "network ", "flood": "network ", "uplink": "uplink ", "vrf": "tenant ", "svc": "service ", "route": "route ",
	"endpoint-policy": "endpoint ", "rule-set": "policies ",
}

// isDenied reports whether a fixed flow marks packets as denied, for the log.
func isDenied(s ovstrace.Step) bool { return hasAction(s, "write_metadata") }

func hasAction(s ovstrace.Step, name string) bool {
	for _, a := range s.Actions {
		if strings.HasPrefix(a, name) {
			return true
		}
	}
	return false
}

// dropWords says which step dropped the packet.
func dropWords(steps []traceapi.Step) string {
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.Table == "deny" || s.Table == "denied" || strings.HasPrefix(s.Table, "reject") {
			continue // it has been sent there
		}
		if s.Words != "" {
			return s.Words
		}
		if i == len(steps)-1 {
			return "no flow of table " + s.Table + " is about it"
		}
	}
	return "the bridge has no flows for it"
}
