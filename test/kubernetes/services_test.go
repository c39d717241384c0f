//go:build kubernetes

package kubernetes

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// answerer is a pod, on a host, that tells its name and who asks, by HTTP at port 8080.
// At 7000 it sends back what it gets. It does not care for being told to end.
func answerer(name, host string, labels ...string) string {
	pod := sleeper("default", name, host, labels...)
	pod = strings.Replace(pod, "terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 600", 1)
	const script = `mkdir -p /www/cgi-bin
cat >/www/cgi-bin/who <<'END'
#!/bin/sh
printf "Content-Type: text/plain\r\n\r\n$(hostname) $REMOTE_ADDR\n"
END
busybox chmod 755 /www/cgi-bin/who
nc -ll -p 7000 -e cat &
exec httpd -f -p 8080 -h /www
`
	return strings.Replace(pod, `command: [sleep, "1000000"]`, fmt.Sprintf("command: [sh, -c, %q]", script), 1)
}

// serviceManifest is a Service of pods with a label role, under an address; spec has
// further fields of it.
func serviceManifest(name, role, ports, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {role: %s}, ports: [%s], %s}\n---\n", name, role, ports, spec)
}

// in runs a shell command on a host, on the computer outside or in a pod.
func (c cluster) in(place, command string) (string, error) {
	c.t.Helper()
	if pod, ok := strings.CutPrefix(place, "pod/"); ok {
		return c.Kubectl(c.t.Context(), "exec", pod, "--", "sh", "-c", command)
	}
	return c.Output(c.t.Context(), place, "sh", "-c", command)
}

// ask asks an address and port from a place, and returns the name of who answers, and
// whom that one sees; or what went wrong.
func (c cluster) ask(place, addr string, port int, patience int) (name string, seen netip.Addr, err error) {
	c.t.Helper()
	nc := "nc -N"
	if strings.HasPrefix(place, "pod/") {
		nc = "nc"
	}
	out, err := c.in(place, fmt.Sprintf(`printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | %s -w %d %s %d 2>&1 | sed -n '$p'`, nc, patience, addr, port))
	if err != nil {
		return "", seen, err
	}
	fields := strings.Fields(out)
	if len(fields) != 2 {
		return "", seen, fmt.Errorf("an answer of %q", out)
	}
	seen, err = netip.ParseAddr(strings.Trim(fields[1], "[]"))
	return fields[0], seen.Unmap(), err
}

// answers waits until all of these, and nobody else, have answered.
func (c cluster) answers(place, addr string, port int, names ...string) {
	c.t.Helper()
	seen := map[string]bool{}
	c.eventually(fmt.Sprintf("answers of %s to %s, who asks %s port %d", names, place, addr, port), func() (bool, string) {
		name, _, err := c.ask(place, addr, port, 20)
		if err == nil && !slices.Contains(names, name) {
			c.t.Fatalf("%s asks %s port %d, and %s answers; expected one of %s", place, addr, port, name, names)
		}
		if seen[name] = true; err != nil {
			delete(seen, name)
		}
		return len(seen) == len(names), fmt.Sprint(seen, err)
	})
}

// refused waits until nobody is there, and that is told.
func (c cluster) refused(place, addr string, port int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("a refusal to %s by %s port %d", place, addr, port), func() (bool, string) {
		out, err := c.in(place, fmt.Sprintf("nc -v -w 5 %s %d </dev/null 2>&1 || true", addr, port))
		return strings.Contains(out, "refused"), fmt.Sprint(out, err)
	})
}

// silence waits until nothing is heard any more.
func (c cluster) silence(place, addr string, port int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("silence for %s at %s port %d", place, addr, port), func() (bool, string) {
		verbose := "-v"
		if strings.HasPrefix(place, "pod/") { // whose nc has no such thing, and tells
			verbose = ""
		}
		out, err := c.in(place, fmt.Sprintf("nc %s -w 2 %s %d </dev/null 2>&1 || true", verbose, addr, port))
		return strings.Contains(out, "timed out"), fmt.Sprint(out, err)
	})
}

// Addresses of the nodes, and of the one outside.
var (
	nodeAddrs  = [][]string{{lab.ControlIP(1).String(), lab.ControlIP6(1).String()}, {lab.ControlIP(2).String(), lab.ControlIP6(2).String()}}
	outsiders  = []netip.Addr{netip.MustParseAddr(lab.OutsiderIP), netip.MustParseAddr(lab.OutsiderIP6)}
	nodePlaces = []string{"host1", "host2"}
)

// TestServices reaches Services from nodes, from outside and from pods, in a cluster
// without kube-proxy.
func TestServices(t *testing.T) {
	c := cluster{labtest.Up(t, lab.Config{Hosts: 2, Kubernetes: true, Tenancy: "strict"}), t}
	c.nodesReady()
	c.wait("--for=create", "serviceaccount/default")
	const dual = "ipFamilyPolicy: RequireDualStack"
	c.apply(answerer("one", "host1", "role", "any") + answerer("two", "host2", "role", "any") + answerer("alone", "host1", "role", "alone") +
		serviceManifest("any", "any", "{name: http, port: 80, targetPort: 8080, nodePort: 30080}, {name: echo, port: 7, targetPort: 7000, nodePort: 30007}",
			dual+", type: NodePort, clusterIP: 10.96.2.1, clusterIPs: [10.96.2.1, 'fd00:10:96::201'], externalIPs: [203.0.113.8, '2001:db8:203::8']") +
		serviceManifest("local", "alone", "{port: 80, targetPort: 8080, nodePort: 30081}", dual+", type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30100") +
		serviceManifest("kept", "any", "{port: 80, targetPort: 8080, nodePort: 30082}", dual+", type: NodePort, sessionAffinity: ClientIP") +
		serviceManifest("nobody", "nobody", "{port: 80, nodePort: 30083}", dual+", type: NodePort, clusterIP: 10.96.2.3, clusterIPs: [10.96.2.3, 'fd00:10:96::203']"))
	c.wait("--for=condition=Ready", "pod/one", "pod/two", "pod/alone")

	c.run("nodes reach containers of all nodes", nodesToPods)
	c.run("nodes reach addresses of Services", func(c cluster) {
		for _, place := range nodePlaces {
			c.answers(place, "10.96.2.1", 80, "one", "two")
			c.answers(place, "fd00:10:96::201", 80, "one", "two")
			c.eventually(place+" connects with the API server by its Service", func() (bool, string) {
				out, err := c.in(place, "nc -v -z -w 20 10.96.0.1 443 2>&1")
				return err == nil, fmt.Sprint(out, err)
			})
		}
	})
	c.run("everybody reaches node ports", func(c cluster) {
		for _, place := range []string{"host1", "host2", lab.Outsider, "pod/one", "pod/alone"} {
			for _, node := range nodeAddrs {
				c.answers(place, node[0], 30080, "one", "two")
				c.answers(place, node[1], 30080, "one", "two")
			}
		}
	})
	c.run("addresses from outside", func(c cluster) {
		for _, place := range []string{lab.Outsider, "pod/alone", "host1", "host2"} {
			c.answers(place, "203.0.113.8", 80, "one", "two")
			c.answers(place, "2001:db8:203::8", 80, "one", "two")
		}
	})
	c.run("the rest of the world", func(c cluster) {
		for _, place := range []string{"host2", "pod/two"} {
			for _, addr := range []string{lab.BeyondIP, lab.BeyondIP6} {
				c.eventually(place+" reaches "+addr, func() (bool, string) {
					out, err := c.in(place, "ping -c 1 -W 5 "+addr)
					return err == nil, fmt.Sprint(out, err)
				})
			}
		}
	})
	c.run("external traffic stays local", staysLocal)
	c.run("load balancers", balancers)
	c.run("policies hold behind the node", behindNode)
	c.run("clients are kept", kept)
	c.run("nobody is there", func(c cluster) {
		for _, place := range []string{"host1", lab.Outsider} {
			c.refused(place, nodeAddrs[0][0], 30083)
			c.refused(place, nodeAddrs[1][1], 30083)
		}
		c.refused("host2", "10.96.2.3", 80)
		c.refused("host2", "fd00:10:96::203", 80)
		c.refused("host2", "10.96.99.99", 80) // nobody's at all
	})
	c.run("datagrams", datagrams)
	c.run("connections outlive the agent", outlive)
	c.run("the last pod ends", lastPod)
}

// nodesToPods: also on other nodes, where pods see one of its addresses.
func nodesToPods(c cluster) {
	for _, pod := range []string{"one", "two"} {
		addrs := strings.Fields(c.kubectl("get", "pod", pod, "-o", "jsonpath={.status.podIPs[*].ip}"))
		if len(addrs) != 2 {
			c.t.Fatalf("pod %s has addresses %s", pod, addrs)
		}
		for _, place := range nodePlaces {
			for _, a := range addrs {
				c.answers(place, a, 8080, pod)
			}
		}
	}
	addr := c.kubectl("get", "pod", "two", "-o", "jsonpath={.status.podIP}")
	if _, seen, err := c.ask("host1", addr, 8080, 20); err != nil || seen.String() != nodeAddrs[0][0] {
		c.t.Errorf("pod two sees %s instead of host1, %v", seen, err)
	}
}

// staysLocal: the pod sees the client, and a node without a pod leads nobody from
// outside to another node. Its own processes and pods it does.
func staysLocal(c cluster) {
	for i, client := range outsiders {
		c.answers(lab.Outsider, nodeAddrs[0][i], 30081, "alone")
		if _, seen, err := c.ask(lab.Outsider, nodeAddrs[0][i], 30081, 20); err != nil || seen != client {
			c.t.Errorf("the pod sees %s instead of %s, %v", seen, client, err)
		}
		c.silence(lab.Outsider, nodeAddrs[1][i], 30081)
		c.answers("host2", nodeAddrs[1][i], 30081, "alone")
		c.answers("pod/two", nodeAddrs[1][i], 30081, "alone")
	}
	for i, status := range []string{"200", "503"} {
		c.eventually("what load balancers are told", func() (bool, string) {
			out, err := c.in(lab.Outsider, fmt.Sprintf(`printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 20 %s 30100`, nodeAddrs[i][0]))
			return strings.HasPrefix(out, "HTTP/1.0 "+status), fmt.Sprintf("%s of %s, %v", out, nodePlaces[i], err)
		})
	}
}

// balancers: an address that they have, and whom it is open to.
func balancers(c cluster) {
	c.kubectl("patch", "service", "local", "--subresource=status", "--type=merge", "-p", `{"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}`)
	c.answers(lab.Outsider, "203.0.113.7", 80, "alone")
	if _, seen, err := c.ask(lab.Outsider, "203.0.113.7", 80, 20); err != nil || seen != outsiders[0] {
		c.t.Errorf("the pod sees %s instead of %s, %v", seen, outsiders[0], err)
	}
	open := func(to string) {
		c.kubectl("patch", "service", "local", "--type=merge", "-p", `{"spec": {"loadBalancerSourceRanges": ["`+to+`"]}}`)
	}
	open("198.51.100.0/24")
	c.silence(lab.Outsider, "203.0.113.7", 80)
	c.answers(lab.Outsider, nodeAddrs[0][0], 30081, "alone") // which is another matter
	open(lab.OutsiderIP + "/32")
	c.answers(lab.Outsider, "203.0.113.7", 80, "alone")
}

// behindNode: who comes by a node is subject to the policies of the pod that the node leads
// to, be he outside, another node or a pod of the node; the node itself is not. That one
// is seen as who he is stays so.
func behindNode(c cluster) {
	// The cluster's tenancy is strict: a pod alone cannot choose where it belongs.
	c.apply(sleeper("default", "azure", "host1", "io.contiv.tenant", "blue"))
	c.told("default", "which its namespace does not allow: add blue/default-net to the annotation io.contiv.allowed of namespace default")
	c.kubectl("annotate", "namespace", "default", "io.contiv.allowed=blue/default-net")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "-t", "blue", "-s", "20.9.0.0/16", "-g", "20.9.0.1", "default-net")
	c.apply(answerer("shut", "host1", "role", "shut") +
		serviceManifest("shut", "shut", "{port: 80, targetPort: 8080, nodePort: 30085}", "ipFamilyPolicy: RequireDualStack, type: NodePort"))
	c.wait("--for=condition=Ready", "pod/shut", "pod/azure")
	everybody := []string{"host1", "host2", lab.Outsider, "pod/one", "pod/two", "pod/azure"}
	check := func(when string, open ...string) {
		for family, addr := range nodeAddrs[0] {
			for _, place := range everybody {
				if place == "pod/azure" && family == 1 { // which has no IPv6
					continue
				}
				if slices.Contains(open, place) {
					c.answers(place, addr, 30085, "shut")
				} else {
					c.silence(place, addr, 30085)
				}
			}
			if _, seen, err := c.ask(lab.Outsider, addr, 30085, 20); slices.Contains(open, lab.Outsider) && (err != nil || seen != outsiders[family]) {
				c.t.Errorf("%s: the pod sees %s instead of %s, %v", when, seen, outsiders[family], err)
			}
		}
	}
	check("without policies", everybody...)
	isolate := func(from string) {
		c.apply("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: shut}\nspec: {podSelector: {matchLabels: {role: shut}}, ingress: [" + from + "]}\n")
	}
	isolate("")
	check("when nobody may", "host1")
	isolate(fmt.Sprintf("{from: [{ipBlock: {cidr: %s/32}}, {ipBlock: {cidr: %s/128}}]}", lab.OutsiderIP, lab.OutsiderIP6))
	check("when one outside may", "host1", lab.Outsider)
	c.kubectl("delete", "networkpolicy/shut", "service/shut", "pod/shut", "pod/azure", "--grace-period=0", "--force", "--timeout", patience.String())
}

// kept: a client by its provider, also by the next agent.
func kept(c cluster) {
	first := ""
	ask := func(when string) {
		for range 10 {
			name, _, err := c.ask(lab.Outsider, nodeAddrs[0][0], 30082, 20)
			if err != nil || first != "" && name != first {
				c.t.Fatalf("%s: the client of %q is answered by %q, %v", when, first, name, err)
			}
			first = name
		}
	}
	c.eventually("an answer", func() (bool, string) {
		_, _, err := c.ask(lab.Outsider, nodeAddrs[0][0], 30082, 20)
		return err == nil, fmt.Sprint(err)
	})
	ask("at first")
	host := c.Hosts()[0]
	if err := host.StopDaemon(c.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	ask("without the agent")
	if err := host.StartDaemon(c.t.Context(), "netplugin"); err != nil {
		c.t.Fatal(err)
	}
	ask("with the next agent")
}

// datagrams: clients that always send from one port are led on when their provider goes.
func datagrams(c cluster) {
	send := func(place, addr string, port, from int) (string, error) {
		return c.in(place, fmt.Sprintf("echo x | nc -u -W 1 -w 20 -p %d %s %d", from, addr, port))
	}
	p := c.probe()
	p.start(probedPod{name: "default/gone", host: "host2", labels: "role: brief"})
	c.apply(serviceManifest("brief", "brief", "{protocol: UDP, port: 53, targetPort: 80, nodePort: 30054}", "type: NodePort, clusterIP: 10.96.2.4"))
	answered := func(by string) {
		for place, addr := range map[string]string{"host1": "10.96.2.4", lab.Outsider: nodeAddrs[0][0]} {
			port := 53
			if place == lab.Outsider {
				port = 30054
			}
			c.eventually("an answer of "+by+" to "+place, func() (bool, string) {
				out, err := send(place, addr, port, 5555)
				return out == "default/"+by, fmt.Sprint(out, err)
			})
		}
	}
	answered("gone")
	p.start(probedPod{name: "default/next", host: "host1", labels: "role: brief"})
	c.kubectl("delete", "pod/gone", "--grace-period=0", "--force", "--timeout", patience.String())
	answered("next")
	c.kubectl("delete", "service/brief", "pod/next", "--grace-period=0", "--force", "--timeout", patience.String())
}

// outlive: a connection from outside, and one of a node, while the agent is down and
// when it is back.
func outlive(c cluster) {
	var words []func(string)
	for place, to := range map[string][]string{lab.Outsider: {nodeAddrs[0][0], "30007"}, "host1": {"10.96.2.1", "7"}} {
		in, lines := io.Pipe()
		answers, out := io.Pipe()
		cmd, err := c.Start(c.t.Context(), place, lab.Stdio{In: in, Out: out}, "nc", to[0], to[1])
		if err != nil {
			c.t.Fatal(err)
		}
		defer func() {
			_ = lines.Close()
			_ = cmd.Process.Kill()
			_ = out.CloseWithError(io.EOF)
			_ = cmd.Wait() // it was killed
		}()
		read := bufio.NewReader(answers)
		words = append(words, func(word string) {
			if _, err := io.WriteString(lines, word+"\n"); err != nil {
				c.t.Fatalf("%s: %s: %v", place, word, err)
			}
			if back, err := read.ReadString('\n'); err != nil || back != word+"\n" {
				c.t.Fatalf("%s: %s comes back as %q, %v", place, word, back, err)
			}
		})
	}
	say := func(word string) {
		for _, w := range words {
			w(word)
		}
	}
	say("before")
	host := c.Hosts()[0]
	if err := host.StopDaemon(c.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	say("without")
	c.answers(lab.Outsider, nodeAddrs[0][0], 30080, "one", "two") // new ones, too
	if err := host.StartDaemon(c.t.Context(), "netplugin"); err != nil {
		c.t.Fatal(err)
	}
	say("with the next")
	c.answers(lab.Outsider, nodeAddrs[0][0], 30080, "one", "two")
}

// lastPod: the only one of a Service takes connections while it ends; after it there is
// nobody.
func lastPod(c cluster) {
	c.kubectl("delete", "pod/alone", "--wait=false")
	c.eventually("the pod terminates", func() (bool, string) {
		out := c.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=local", "-o", "jsonpath={.items[*].endpoints[*].conditions.terminating}")
		return strings.Count(out, "true") == 2, out
	})
	for range 5 {
		c.answers("host2", nodeAddrs[1][0], 30081, "alone")
		c.answers(lab.Outsider, nodeAddrs[0][1], 30081, "alone")
	}
	c.kubectl("delete", "pod/alone", "--grace-period=0", "--force", "--timeout", patience.String())
	c.refused("host2", nodeAddrs[1][0], 30081)
	c.refused(lab.Outsider, nodeAddrs[0][0], 30081)
}
