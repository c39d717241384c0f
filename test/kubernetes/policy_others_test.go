//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/test/kubernetes/prober"
)

// proberTarget is whom a prober asks.
type proberTarget = prober.Target

// behindService: who asks for a Service is subject to what holds for the pod behind it, and
// a pod reaches itself.
func (p probed) behindService() {
	const ports = `[{name: t80, port: 80}, {name: t81, port: 81}, {name: u80, port: 80, protocol: UDP}, {name: u81, port: 81, protocol: UDP}]`
	for _, name := range []string{"x/a", "y/c"} {
		namespace, pod, _ := strings.Cut(name, "/")
		p.apply(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {namespace: %q, name: of-%s}\nspec: {selector: {pod: %[2]q}, ipFamilyPolicy: PreferDualStack, ports: %s}\n", namespace, pod, ports))
	}
	var all []question
	virtual := map[string]netip.Addr{}
	for service, pod := range map[string]string{"x/of-a": "x/a", "y/of-c": "y/c"} {
		namespace, name, _ := strings.Cut(service, "/")
		var ips []netip.Addr
		for _, text := range strings.Fields(p.kubectl("get", "service", "-n", namespace, name, "-o", "jsonpath={.spec.clusterIPs[*]}")) {
			ips = append(ips, netip.MustParseAddr(text))
		}
		virtual[service] = ips[0]
		for _, from := range p.names() {
			for _, q := range p.ask(from, service, pod, ips...) {
				if q.target.Proto != prober.ICMP { // which Services do not know
					all = append(all, q)
				}
			}
		}
	}
	p.check("without policies", all, "")
	for _, step := range []struct{ policy, expected string }{
		{policy("x", "p", "{podSelector: {}, policyTypes: [Ingress, Egress]}"), "deny * x/of-a\ndeny x/* *\nallow x/a x/of-a"},
		{policy("x", "p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: z}}}], ports: [{port: 80}]}]}"), "deny * x/of-a\nallow x/a x/of-a\nallow z/* x/of-a tcp80"},
		{
			policy("z", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {ns: x}}, podSelector: {matchLabels: {pod: a}}}]}]}"),
			"deny z/* y/of-c",
		},
		// The address of a Service is not who answers.
		{
			policy("z", "p", fmt.Sprintf("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: %s/32}}, {ipBlock: {cidr: %s/32}}]}]}", virtual["x/of-a"], virtual["y/of-c"])),
			"deny z/* *",
		},
		{policy("y", "p", "{podSelector: {matchLabels: {pod: c}}, ingress: [{ports: [{port: web}]}]}"), "deny * y/of-c\nallow y/c y/of-c\nallow * y/of-c tcp81"},
	} {
		p.apply(step.policy)
		p.check(step.policy, all, step.expected)
		p.kubectl("delete", "networkpolicies", "--all", "-A")
	}
}

// hosts: a pod and its own host always reach each other; others are known by their
// addresses alone.
func (p probed) hosts() {
	p.start(probedPod{name: "x/host1", host: "host1", onHost: true}, probedPod{name: "x/host2", host: "host2", onHost: true})
	defer p.remove("x/host1", "x/host2")
	near, far := p.pods["x/host1"], p.pods["x/host2"]
	var in, out []question // of two pods on host1 and one on host2
	for _, host := range []string{"x/host1", "x/host2"} {
		for _, pod := range []string{"x/a", "x/c", "x/b"} {
			in = append(in, p.ask(host, pod, pod, p.pods[pod].v4, p.pods[pod].v6)...)
			out = append(out, p.ask(pod, host, host, p.pods[host].v4)...)
		}
	}
	both := slices.Concat(in, out)
	p.check("without policies", both, "")
	p.apply(policy("x", "p", "{podSelector: {}, policyTypes: [Ingress, Egress]}"))
	const own = `deny * *
		allow x/host1 x/[ac]
		allow x/[ac] x/host1
		allow x/host2 x/b
		allow x/b x/host2`
	p.check("default deny", both, own)
	p.apply(policy("x", "q", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}], egress: [{to: [{namespaceSelector: {}}]}], policyTypes: [Ingress, Egress]}"))
	p.check("no selector means pods of hosts", both, own)
	p.apply(policy("x", "q", fmt.Sprintf("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: %s/32}}]}], egress: [{to: [{ipBlock: {cidr: %s/32}}], ports: [{port: 80}]}], policyTypes: [Ingress, Egress]}", far.v4, near.v4)))
	p.check("addresses of hosts", both, own+`
		allow x/host2 x/[ac] *v4
		allow x/b x/host1 tcp80v4`)
}

// groups: what either denies is denied.
func (p probed) groups() {
	p.netctl("policy", "create", "no-81")
	p.netctl("policy", "rule-add", "no-81", "1", "--direction=in", "--protocol=tcp", "--port=81", "--action=deny")
	p.netctl("group", "create", "pods", "strict", "--policy", "no-81", "--wait")
	p.start(probedPod{name: "x/g", host: "host1", labels: "io.contiv.net-group: strict"})
	questions := p.questions("x/g", "x/b", "y/a", "z/a")
	p.check("a policy of a group alone", questions, "deny * x/g tcp81")
	p.apply(policy("x", "p", "{podSelector: {matchLabels: {pod: g}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}], ports: [{port: 81}, {port: 80}]}]}"))
	p.check("and one of the namespace", questions, "deny * x/g\nallow y/* x/g tcp80")
	p.netctl("policy", "rule-rm", "no-81", "1")
	p.check("that alone", questions, "deny * x/g\nallow y/* x/g tcp8*")
	p.remove("x/g")
	p.eventually("the group can be removed", func() (bool, string) {
		out, err := p.NetctlOutput(p.t.Context(), "group", "rm", "strict")
		return err == nil, fmt.Sprint(out, err)
	})
	p.netctl("policy", "rm", "no-81")
}

// sctp by asking the switch what it would do: this kernel need not have it.
func (p probed) sctp() {
	p.apply(policy("x", "p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}], ports: [{protocol: SCTP, port: 80, endPort: 100}]}]}"))
	for _, c := range []struct {
		from, to string
		port     int
		arrives  bool
	}{
		{"y/a", "x/a", 80, true},
		{"y/b", "x/a", 100, true},
		{"y/a", "x/b", 90, true},
		{"y/a", "x/a", 79, false},
		{"y/a", "x/a", 101, false},
		{"z/a", "x/a", 80, false},
		{"z/b", "x/a", 80, false},
		{"z/a", "y/a", 80, true},
	} {
		for _, family := range []string{"ipv4", "ipv6"} {
			from, to := p.pods[c.from].v4, p.pods[c.to].v4
			if family == "ipv6" {
				from, to = p.pods[c.from].v6, p.pods[c.to].v6
			}
			p.eventually(fmt.Sprintf("SCTP of %s to port %d of %s by %s arrives: %t", c.from, c.port, c.to, family, c.arrives), func() (bool, string) {
				var tr traceapi.Trace
				out := p.netctl("trace", "--json", "--tenant", "default", "--from", from.String(), "--to", to.String(), "--proto", "sctp", "--port", fmt.Sprint(c.port))
				if err := json.Unmarshal([]byte(out), &tr); err != nil {
					p.t.Fatalf("%v in %s", err, out)
				}
				return tr.Arrives == c.arrives, out
			})
		}
	}
}

// tenants: a pod of another one is not matched by the address it shares with a pod of this
// one, nor the other way round.
func (p probed) tenants() {
	p.netctl("tenant", "create", "blue")
	p.netctl("net", "create", "-t", "blue", "-s", "10.50.0.0/24", "-g", "10.50.0.254", "--subnetv6", "2001:db8:50::/100", "pods")
	p.namespaces("io.contiv.tenant: blue, io.contiv.network: pods", "w")
	p.start(probedPod{name: "w/a", host: "host1"}, probedPod{name: "w/b", host: "host2"}, probedPod{name: "w/c", host: "host1"})
	here, there := p.questions("x/a", "x/b", "x/c", "y/a", "y/b", "y/c", "z/a", "z/b", "z/c"), p.questions("w/a", "w/b", "w/c")
	both := slices.Concat(here, there)
	twin := ""
	for name, pod := range p.pods {
		if pod.v4 == p.pods["w/b"].v4 && name != "w/b" {
			twin = name
		}
	}
	if twin == "" {
		p.t.Fatalf("no pod has the address of w/b, %s", p.pods["w/b"].v4)
	}
	p.check("without policies", both, "")
	p.apply(policy("x", "p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: w}}}]}]}"))
	p.check("pods of the other tenant may enter", both, "deny * x/*")
	namespace, pod, _ := strings.Cut(twin, "/")
	meant := fmt.Sprintf("{namespaceSelector: {matchLabels: {ns: %q}}, podSelector: {matchLabels: {pod: %q}}}", namespace, pod)
	p.apply(policy("w", "p", "{podSelector: {}, ingress: [{from: ["+meant+"]}]}"))
	p.check("its pods allow a twin", both, "deny * x/*\ndeny * w/*")
	p.apply(policy("w", "p", "{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}]}]}"))
	p.check("its pods allow one of them", both, "deny * x/*\ndeny * w/*\nallow w/b w/*")
	p.remove("w/a", "w/b", "w/c")
}
