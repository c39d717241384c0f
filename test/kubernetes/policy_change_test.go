//go:build kubernetes

package kubernetes

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// policyChanges are what happens to pods that are subject to policies, in this order.
var policyChanges = []struct {
	name string
	does func(p probed)
}{
	{"labels change", probed.labels},
	{"policies change under open connections", probed.streams},
	{"a pod comes back with another address", probed.another},
	{"a pod is born isolated", probed.born},
	{"the agents restart", probed.agents},
	{"the log names policies", probed.logged},
	{"the pods of a Service", probed.behindService},
	{"the hosts", probed.hosts},
	{"policies of groups hold besides", probed.groups},
	{"SCTP", probed.sctp},
	{"another tenant has the same addresses", probed.tenants},
}

// labels of pods and namespaces decide, also later.
func (p probed) labels() {
	all := p.questions(p.names()...)
	p.apply(policy("x", "p", `{podSelector: {matchExpressions: [{key: open, operator: DoesNotExist}]}, ingress: [
  {from: [{namespaceSelector: {}, podSelector: {matchLabels: {role: friend}}}]}, {from: [{namespaceSelector: {matchLabels: {team: red}}}]}]}`))
	for _, step := range []struct{ object, label, expected string }{
		{"pod/b -n y", "role=friend", "deny * x/*\nallow y/b x/*"},
		{"namespace/z", "team=red", "deny * x/*\nallow y/b x/*\nallow z/* x/*"},
		{"pod/a -n x", "open=yes", "deny * x/b\ndeny * x/c\nallow y/b x/*\nallow z/* x/*"},
		{"pod/b -n y", "role=foe", "deny * x/b\ndeny * x/c\nallow z/* x/*"},
		{"namespace/z", "team-", "deny * x/b\ndeny * x/c"},
		{"pod/a -n x", "open-", "deny * x/*"},
		{"pod/b -n y", "role-", "deny * x/*"},
	} {
		p.kubectl(append(append([]string{"label", "--overwrite"}, strings.Fields(step.object)...), step.label)...)
		p.check(step.object+" "+step.label, all, step.expected)
	}
}

// streams: what is still allowed goes on, what is not stops.
func (p probed) streams() {
	allow := func(names string) string {
		return policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}, podSelector: {matchExpressions: [{key: pod, operator: In, values: ["+names+"]}]}}], ports: [{port: 80}]}]}")
	}
	p.apply(allow("a, b, c"))
	to := netip.AddrPortFrom(p.pods["x/a"].v4, 80)
	words := 0
	echo := func(from string, stream int, wait time.Duration) bool {
		words++
		back, err := p.pods[from].Echo(p.t.Context(), stream, fmt.Sprint("word", words), wait)
		if err != nil {
			p.t.Fatal(err)
		}
		return back
	}
	open := map[string]int{}
	for _, from := range []string{"y/a", "y/b", "y/c"} { // on both hosts
		p.eventually("a connection of "+from, func() (ok bool, said string) {
			var err error
			open[from], err = p.pods[from].Open(p.t.Context(), to, time.Minute)
			return err == nil, fmt.Sprint(err)
		})
	}
	goesOn := func(from string) {
		p.t.Helper()
		if !echo(from, open[from], patience) {
			p.t.Errorf("the connection of %s does not go on", from)
		}
	}
	stops := func(from string) {
		p.t.Helper()
		p.eventually("the end of the connection of "+from, func() (bool, string) {
			return !echo(from, open[from], time.Second), "its words come back"
		})
	}
	goesOn("y/a")
	p.apply(allow("a, c"))
	stops("y/b")
	goesOn("y/a")
	goesOn("y/c")
	p.apply(policy("y", "q", "{podSelector: {matchLabels: {pod: c}}, policyTypes: [Egress]}"))
	stops("y/c")
	goesOn("y/a")
	p.apply(policy("y", "r", "{podSelector: {matchLabels: {pod: a}}, policyTypes: [Ingress]}"))
	goesOn("y/a") // answers to what it has opened
	p.apply(policy("x", "s", "{podSelector: {}, policyTypes: [Egress]}"))
	goesOn("y/a")
	p.kubectl("delete", "networkpolicy", "-n", "x", "p", "s")
	goesOn("y/a")
	p.apply(policy("x", "p", "{podSelector: {}, policyTypes: [Ingress]}"))
	stops("y/a")
}

// another: policies follow a pod to its next address, and not who gets its old one.
func (p probed) another() {
	p.apply(policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}, podSelector: {matchLabels: {pod: b}}}]}]}"))
	p.check("before", p.questions(p.names()...), "deny * x/a\nallow y/b x/a")
	was := p.pods["y/b"].v4
	p.remove("y/b")
	var others []string
	for i := 0; ; i++ {
		name := fmt.Sprintf("y/d%d", i)
		p.start(probedPod{name: name, host: "host1"})
		others = append(others, name)
		if p.pods[name].v4 == was {
			break
		}
		if i == 20 {
			p.t.Fatalf("none of %d pods has got the address %s", i, was)
		}
	}
	p.start(probedPod{name: "y/b", host: "host2", labels: "tier: back", ports: "{name: web, containerPort: 80}"})
	p.check("afterwards", p.questions(p.names()...), "deny * x/a\nallow y/b x/a")
	p.remove(others...)
}

// born: a pod is subject to its policies from its first packet on, and the kubelet's probes
// reach it nevertheless.
func (p probed) born() {
	p.apply(policy("x", "p", "{podSelector: {}, policyTypes: [Ingress, Egress]}"))
	p.check("others are isolated", p.questions("x/b", "y/a"), "deny * *")
	target := p.questions("x/b", "y/a")[0].target // tcp, on another host than the next two
	const ready = "readinessProbe: {tcpSocket: {port: 81}, periodSeconds: 1}"
	for _, host := range []string{"host1", "host2"} {
		p.start(probedPod{name: "x/new-" + host, host: host, extra: ready, first: []proberTarget{target}})
		if name, err := p.pods["x/new-"+host].First(p.t.Context()); err != nil || name != "" {
			p.t.Errorf("the first connection of a pod on %s is with %q, %v", host, name, err)
		}
	}
	p.check("they are isolated", p.questions("x/new-host1", "x/new-host2", "z/a"), "deny * *")
	p.remove("x/new-host1", "x/new-host2")
}

// agents: nothing happens while they are down, and what was changed then happens when
// they are back.
func (p probed) agents() {
	all := p.questions(p.names()...)
	p.apply(policy("x", "p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: z}}}], ports: [{port: 80}]}]}"))
	const before = "deny * x/*\nallow z/* x/* tcp80"
	p.check("before", all, before)
	stream, err := p.pods["z/a"].Open(p.t.Context(), netip.AddrPortFrom(p.pods["x/b"].v6, 80), patience)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, h := range p.Hosts() {
		if err := h.StopDaemon(p.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
			p.t.Fatal(err)
		}
	}
	p.check("without agents", all, before)
	p.apply(policy("y", "p", "{podSelector: {matchLabels: {pod: a}}, policyTypes: [Egress]}"))
	p.check("a policy that nobody knows yet", all, before)
	for _, h := range p.Hosts() {
		if err := h.StartDaemon(p.t.Context(), "netplugin"); err != nil {
			p.t.Fatal(err)
		}
	}
	p.check("with the next agents", all, before+"\ndeny y/a *")
	if back, err := p.pods["z/a"].Echo(p.t.Context(), stream, "still", patience); !back || err != nil {
		p.t.Errorf("the connection of before: %t, %v", back, err)
	}
}
