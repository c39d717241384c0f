//go:build kubernetes

package kubernetes

import (
	"fmt"
	"strings"
	"testing"
)

// TestNetworkPolicies holds pods of three namespaces on two nodes to policies, and
// compares who reaches whom with what is expected: every pod asks every other by TCP,
// UDP and ICMP, IPv4 and IPv6.
func TestNetworkPolicies(t *testing.T) {
	p := up(t).probe()
	p.netctl("net", "create", "-s", "10.50.0.0/24", "-g", "10.50.0.254", "--subnetv6", "2001:db8:50::/100", "pods")
	p.nodesReady()
	p.namespaces("io.contiv.network: pods", "x", "y", "z")
	var pods []probedPod
	for i, namespace := range []string{"x", "y", "z"} {
		for j, name := range []string{"a", "b", "c"} {
			web := 80 // the number of a port with a name is the pod's own affair
			if name == "c" {
				web = 81
			}
			pods = append(pods, probedPod{
				name: namespace + "/" + name, host: fmt.Sprintf("host%d", 1+(i+j)%2),
				labels: map[string]string{"a": "tier: front", "b": "tier: back"}[name],
				ports:  fmt.Sprintf("{name: web, containerPort: %d}", web),
			})
		}
	}
	p.run("pods", func(p probed) { p.start(pods...) })
	if t.Failed() {
		return
	}
	all := p.questions(p.names()...)
	p.run("no policy", func(p probed) { p.check("everybody reaches everybody", all, "") })
	for _, c := range policyCases {
		p.run(c.name, func(p probed) {
			defer p.kubectl("delete", "networkpolicies", "--all", "-A")
			p.apply(p.fill(c.policies))
			p.check("policies hold", all, c.expected)
		})
	}
	for _, c := range policyChanges {
		p.run(c.name, func(p probed) {
			defer p.kubectl("delete", "networkpolicies", "--all", "-A")
			c.does(p)
		})
	}
	p.run("random policies", randomPolicies)
	p.run("nothing is left of policies", func(p probed) { p.check("everybody reaches everybody", p.questions(p.names()...), "") })
}

// namespaces makes some, with labels (YAML) besides ns, which is the name.
func (c cluster) namespaces(labels string, names ...string) {
	c.t.Helper()
	manifest := ""
	for _, name := range names {
		manifest += fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %q, labels: {ns: %[1]q, %s}}\n---\n", name, labels)
	}
	c.apply(manifest)
	for _, name := range names {
		c.wait("--for=create", "serviceaccount/default", "-n", name)
	}
}

// fill puts the addresses of pods into a text, @NAMESPACE/NAME4 and @NAMESPACE/NAME6.
func (p probed) fill(text string) string {
	var pairs []string
	for name, pod := range p.pods {
		pairs = append(pairs, "@"+name+"4", pod.v4.String()+"/32", "@"+name+"6", fmt.Sprintf("%q", pod.v6.String()+"/128"))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// policy is a NetworkPolicy, whose spec is YAML.
func policy(namespace, name, spec string) string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {namespace: %q, name: %q}\nspec: %s\n---\n", namespace, name, spec)
}
