//go:build kubernetes

package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/kubernetes/prober"
	"github.com/contiv/netplugin/test/lab"
)

// probedPorts are where probed pods answer.
var probedPorts = []int{80, 81}

// probed is a set of pods that tell whom they can reach. It is a cluster with pods
// that run a prober.
type probed struct {
	cluster
	dir  string                // of the program and of the sockets of pods
	pods map[string]*oneProbed // by namespace/name
}

// oneProbed is a pod whose prober is connected.
type oneProbed struct {
	*prober.Client
	v4, v6 netip.Addr
}

// probe makes a cluster's pods ones that can be probed.
func (c cluster) probe() probed {
	c.t.Helper()
	// A short path: that of a socket has 107 bytes.
	dir, err := os.MkdirTemp("", "probed")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := prober.Build(c.t.Context(), filepath.Join(dir, "prober")); err != nil {
		c.t.Fatal(err)
	}
	return probed{c, dir, map[string]*oneProbed{}}
}

// run is cluster.run.
func (p probed) run(name string, f func(p probed)) {
	p.t.Helper()
	p.cluster.run(name, func(c cluster) { f(probed{c, p.dir, p.pods}) })
}

// probedPod describes a pod.
type probedPod struct {
	name   string // namespace/name
	host   string
	labels string // YAML, without braces
	ports  string // likewise: more named ports
	extra  string // of its container, likewise
	first  []prober.Target
	onHost bool // uses the network of the host
}

func (p probed) socket(name string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(name, "/", "-"))
}

// manifest is that of a pod.
func (p probed) manifest(pod probedPod) string {
	namespace, name, _ := strings.Cut(pod.name, "/")
	command, err := json.Marshal(prober.Command(filepath.Join(p.dir, "prober"), pod.name, p.socket(pod.name), probedPorts, pod.first...))
	if err != nil {
		p.t.Fatal(err)
	}
	var ports []string
	for _, n := range probedPorts {
		for _, proto := range []string{"TCP", "UDP", "SCTP"} {
			ports = append(ports, fmt.Sprintf("{name: %s%d, containerPort: %[2]d, protocol: %s}", strings.ToLower(proto), n, proto))
		}
	}
	if pod.ports != "" {
		ports = append(ports, pod.ports)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {namespace: %q, name: %q, labels: {pod: %[2]q, %s}}
spec:
  nodeName: %s
  hostNetwork: %t
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %s, command: %s, ports: [%s], volumeMounts: [{name: probe, mountPath: %s}], %s}]
  volumes: [{name: probe, hostPath: {path: %[9]s}}]
---
`, namespace, name, pod.labels, pod.host, pod.onHost, lab.KubeImage, command, strings.Join(ports, ", "), p.dir, pod.extra)
}

// start makes pods and connects with them when they are ready.
func (p probed) start(pods ...probedPod) {
	p.t.Helper()
	manifest := ""
	for _, pod := range pods {
		manifest += p.manifest(pod)
	}
	p.apply(manifest)
	byNamespace := map[string][]string{}
	for _, pod := range pods {
		namespace, name, _ := strings.Cut(pod.name, "/")
		byNamespace[namespace] = append(byNamespace[namespace], "pod/"+name)
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		p.wait(append([]string{"--for=condition=Ready", "-n", namespace}, byNamespace[namespace]...)...)
	}
	addresses := p.addresses()
	for _, pod := range pods {
		p.connect(pod.name, addresses[pod.name])
	}
}

// connect connects with the prober of a pod that runs.
func (p probed) connect(name string, ips []netip.Addr) {
	p.t.Helper()
	one := &oneProbed{}
	p.eventually("the prober of "+name, func() (ok bool, said string) {
		var err error
		one.Client, err = prober.Dial(p.socket(name))
		return err == nil, fmt.Sprint(err)
	})
	for _, ip := range ips {
		if ip.Is4() {
			one.v4 = ip
		} else {
			one.v6 = ip
		}
	}
	p.pods[name] = one
}

// remove ends pods.
func (p probed) remove(names ...string) {
	p.t.Helper()
	for _, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		p.kubectl("delete", "pod", "-n", namespace, name, "--timeout", patience.String())
		_ = p.pods[full].Close()
		delete(p.pods, full)
	}
}

// addresses are those of all pods.
func (p probed) addresses() map[string][]netip.Addr {
	p.t.Helper()
	out := map[string][]netip.Addr{}
	for line := range strings.Lines(p.kubectl("get", "pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.status.podIPs[*].ip}{"\n"}{end}`)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		for _, f := range fields[1:] {
			ip, err := netip.ParseAddr(f)
			if err != nil {
				p.t.Fatalf("address of pod %s: %v", fields[0], err)
			}
			out[fields[0]] = append(out[fields[0]], ip)
		}
	}
	return out
}

// question is something that somebody can reach, or not.
type question struct {
	from, to string
	port     string // such as tcp80v4, icmpv6
	target   prober.Target
	answer   string // of the expected pod
}

// questions are those of some pods to each other.
func (p probed) questions(names ...string) []question {
	var out []question
	for _, from := range names {
		for _, to := range names {
			if from != to { // who never leaves its host
				out = append(out, p.ask(from, to, to, p.pods[to].v4, p.pods[to].v6)...)
			}
		}
	}
	return out
}

// ask are the questions of a pod to addresses, where somebody is expected to answer.
func (p probed) ask(from, to, answer string, addresses ...netip.Addr) []question {
	var out []question
	for _, a := range addresses {
		family := "v4"
		if !a.IsValid() {
			continue
		} else if a.Is6() {
			family = "v6"
		}
		for _, port := range probedPorts {
			for _, proto := range []string{prober.TCP, prober.UDP} {
				out = append(out, question{
					from, to, fmt.Sprintf("%s%d%s", proto, port, family),
					prober.Target{Proto: proto, To: netip.AddrPortFrom(a, uint16(port))},
					answer,
				})
			}
		}
		out = append(out, question{from, to, "icmp" + family, prober.Target{Proto: prober.ICMP, To: netip.AddrPortFrom(a, 0)}, prober.ICMPAnswer})
	}
	return out
}

// observe asks questions, and returns the answers in their order.
func (p probed) observe(questions []question, patience time.Duration) []string {
	p.t.Helper()
	byPod := map[string][]int{}
	for i, q := range questions {
		byPod[q.from] = append(byPod[q.from], i)
	}
	answers := make([]string, len(questions))
	var asking sync.WaitGroup
	for from, indices := range byPod {
		asking.Go(func() {
			targets := make([]prober.Target, len(indices))
			for i, n := range indices {
				targets[i] = questions[n].target
			}
			names, err := p.pods[from].Ask(p.t.Context(), targets, patience)
			if err != nil || len(names) != len(targets) {
				p.t.Errorf("%s asks: %d answers, %v", from, len(names), err)
				return
			}
			for i, n := range indices {
				answers[n] = names[i]
			}
		})
	}
	asking.Wait()
	return answers
}

// check asks until the answers are as the rules say; see parseRules. An answer is waited
// for longer each time, as long waits for those that shall not come cost time and short
// ones for those that shall fail on a slow machine.
func (p probed) check(what string, questions []question, rules string) {
	p.t.Helper()
	p.checkIf(what, questions, parseRules(p.t, rules).allows)
}

// checkIf is check with a function that says what is allowed.
func (p probed) checkIf(what string, questions []question, allowed func(question) bool) {
	p.t.Helper()
	wait := 250 * time.Millisecond
	p.eventually(what, func() (bool, string) {
		answers := p.observe(questions, wait)
		if p.t.Failed() {
			p.t.FailNow()
		}
		wait = min(2*wait, 20*time.Second)
		var wrong []string
		for i, q := range questions {
			want := ""
			if allowed(q) {
				want = q.answer
			}
			if got := answers[i]; got != want {
				wrong = append(wrong, fmt.Sprintf("%s asks %s at %s (%s): answer %q, expected %q", q.from, q.to, q.port, q.target.To, got, want))
			}
		}
		return len(wrong) == 0, fmt.Sprintf("%d of %d answers are wrong:\n%s", len(wrong), len(questions), strings.Join(wrong[:min(len(wrong), 40)], "\n"))
	})
}

// names are those of all probed pods, in order.
func (p probed) names() []string {
	return slices.SortedFunc(maps.Keys(p.pods), cmp.Compare[string])
}

// ruleOf is a line of what is expected.
type ruleOf struct {
	allow    bool
	from, to string
	ports    []string
}

// ruleList is what is expected: the last rule that says something of a question decides,
// and without any it is allowed.
type ruleList []ruleOf

// parseRules reads lines such as
//
//	deny  * x/a
//	allow y/* x/a tcp80 udp*
//
// which name who asks, who is asked, and the ports, all as patterns of path.Match; * for
// pods stands for all. A port is of both families, unless it ends in v4 or v6.
func parseRules(t *testing.T, text string) ruleList {
	t.Helper()
	var out ruleList
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 3 || f[0] != "allow" && f[0] != "deny" {
			t.Fatalf("rule %q: expected allow or deny, two pods, and ports", line)
		}
		out = append(out, ruleOf{f[0] == "allow", f[1], f[2], f[3:]})
	}
	return out
}

func (l ruleList) allows(q question) bool {
	for _, r := range slices.Backward(l) {
		if like(r.from, q.from) && like(r.to, q.to) && (len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p string) bool {
			return like(p, q.port) || like(p, strings.TrimSuffix(strings.TrimSuffix(q.port, "v4"), "v6"))
		})) {
			return r.allow
		}
	}
	return true
}

func like(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return pattern == "*" || err == nil && ok
}
