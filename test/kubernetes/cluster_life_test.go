//go:build kubernetes

package kubernetes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/install/k8s"
	"github.com/contiv/netplugin/test/lab"
)

// web is a Deployment on all nodes whose pods tell their names, and its Services.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers:
        - name: web
          image: ` + lab.KubeImage + `
          command: [sh, -c, "mkdir -p /www; hostname >/www/index.html; exec httpd -f -p 8080 -h /www"]
          ports: [{name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  clusterIP: 10.96.1.1
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec:
  clusterIP: 10.96.1.2
  selector: {app: nobody}
  ports: [{port: 80}]
---
`

// get is a shell function that prints the last line of the answer of an address and port
// to HTTP. (The wget of a static busybox wants libraries.)
const get = `get() { printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 20 "$1" "$2" | sed -n '$p'; }; `

// sleeper is a pod that does nothing.
func sleeper(namespace, name, host string, labels ...string) string {
	s := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: %s\n  labels: {app: %[1]s", name, namespace)
	for i := 0; i+1 < len(labels); i += 2 {
		s += fmt.Sprintf(", %s: %s", labels[i], labels[i+1])
	}
	s += "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
	if host != "" {
		s += "  nodeName: " + host + "\n"
	}
	return s + "  containers: [{name: main, image: " + lab.KubeImage + ", command: [sleep, \"1000000\"]}]\n---\n"
}

// TestCluster is the life of pods on a network of Contiv, as the users of a cluster see
// it.
func TestCluster(t *testing.T) {
	c := up(t)
	c.run("nodes become ready", func(c cluster) { c.nodesReady() })
	c.run("the manifest is accepted", func(c cluster) {
		if out := c.apply(k8s.Manifest, "--dry-run=server"); strings.Count(out, "dry run") != strings.Count(k8s.Manifest, "\n---\n")+1 {
			t.Errorf("kubectl says %s", out)
		}
	})
	c.wait("--for=create", "serviceaccount/default")
	c.apply(web + sleeper("default", "client", "host1") + sleeper("default", "far", "host2"))
	// Pods are ready when the kubelet of their node has reached them.
	c.run("a Deployment", func(c cluster) {
		c.kubectl("rollout", "status", "deployment/web", "--timeout", patience.String())
		c.wait("--for=condition=Ready", "pod/client", "pod/far")
	})
	c.run("pods reach pods", pods)
	c.run("pods reach Services", services)
	c.run("pods reach the API server", func(c cluster) {
		for _, pod := range []string{"client", "far"} {
			c.eventually("a connection of "+pod, func() (bool, string) {
				out, err := c.Kubectl(c.t.Context(), "exec", pod, "--", "sh", "-c", "nc -w 5 10.96.0.1 443 </dev/null && echo connected")
				return strings.Contains(out, "connected"), fmt.Sprint(out, err)
			})
		}
	})
	c.run("labels say where pods belong", places)
	c.run("what is missing is told", missing)
	c.run("the agent restarts", restart)
	c.run("addresses come back", func(c cluster) {
		c.kubectl("delete", "deployment/web", "pod/client", "pod/far", "--timeout", patience.String())
		c.eventually("no endpoints", func() (bool, string) {
			n := c.endpoints("default", "default-net")
			return n == 0, fmt.Sprintf("%d endpoints", n)
		})
	})
}

// pods: on the same node and on another one, with addresses of the default network.
func pods(c cluster) {
	ips := c.podIPs("app=web")
	if len(ips) != 4 {
		c.t.Fatalf("pods %v", ips)
	}
	subnet := netip.MustParsePrefix("20.1.0.0/16")
	for _, name := range slices.Sorted(maps.Keys(ips)) {
		if a, err := netip.ParseAddr(ips[name]); err != nil || !subnet.Contains(a) {
			c.t.Errorf("%s has address %q, %v; expected one of %s", name, ips[name], err, subnet)
		}
		for _, from := range []string{"client", "far"} {
			if got := c.pod(from, get+"get "+ips[name]+" 8080"); got != name {
				c.t.Errorf("%s asks %s and gets %q", from, name, got)
			}
		}
	}
}

// services: every pod gets its share, also of its own connections; and where there is
// nobody, that is told.
func services(c cluster) {
	ips := c.podIPs("app=web")
	c.eventually("answers of all pods", func() (bool, string) {
		seen := map[string]bool{}
		for _, name := range strings.Fields(c.pod("client", get+"for i in $(seq 40); do get 10.96.1.1 80; done")) {
			if _, ok := ips[name]; !ok {
				c.t.Fatalf("an answer of %q", name)
			}
			seen[name] = true
		}
		return len(seen) == len(ips), fmt.Sprint(seen)
	})
	for name := range ips {
		if out := strings.Fields(c.pod(name, get+"for i in $(seq 10); do get 10.96.1.1 80; done")); len(out) != 10 {
			c.t.Errorf("%s cannot reach the Service it stands behind: %s", name, out)
		}
	}
	c.eventually("a refusal", func() (bool, string) {
		out, _ := c.Kubectl(c.t.Context(), "exec", "client", "--", "sh", "-c", "nc -w 20 10.96.1.2 80 </dev/null 2>&1")
		return strings.Contains(out, "refused"), out
	})
}

// places: of the namespace and of the pod.
func places(c cluster) {
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "-t", "blue", "-s", "30.1.0.0/24", "-g", "30.1.0.1", "front")
	c.netctl("net", "create", "-s", "40.1.0.0/24", "-g", "40.1.0.1", "side")
	c.netctl("group", "create", "side", "web")
	c.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {io.contiv.tenant: blue, io.contiv.network: front}}\n")
	c.wait("--for=create", "serviceaccount/default", "-n", "shop")
	c.apply(sleeper("shop", "one", "host1") + sleeper("default", "two", "host2", "io.contiv.network", "side", "io.contiv.net-group", "web") +
		sleeper("shop", "thief", "host2", "io.contiv.tenant", "default"))
	for name, want := range map[string][3]string{"one": {"shop", "blue", "front"}, "two": {"default", "default", "side"}} {
		c.wait("--for=condition=Ready", "-n", want[0], "pod/"+name)
		if n := c.endpoints(want[1], want[2]); n != 1 {
			c.t.Errorf("network %s of tenant %s has %d endpoints, expected that of pod %s", want[2], want[1], n, name)
		}
	}
	if out := c.netctl("group", "inspect", "web"); !strings.Contains(out, "40.1.0.") {
		c.t.Errorf("pod two is not in its group: %s", out)
	}
	c.told("shop", "remove io.contiv.tenant from the pod")
	c.kubectl("delete", "-n", "shop", "pod/one", "pod/thief", "--timeout", patience.String())
	c.kubectl("delete", "pod/two", "--timeout", patience.String())
}

// missing: a network and a group that there are not.
func missing(c cluster) {
	c.apply(sleeper("default", "lost", "host1", "io.contiv.network", "nowhere") + sleeper("default", "alone", "host2", "io.contiv.net-group", "nobody"))
	c.apply(sleeper("default", "stranger", "host1", "io.contiv.tenant", "nobody"))
	c.told("default", "create it with: netctl tenant create nobody, then its network with: netctl net create -t nobody")
	c.kubectl("delete", "pod/stranger", "--grace-period=0", "--force", "--timeout", patience.String())
	c.told("default", "netctl net create -t default -s SUBNET -g GATEWAY nowhere")
	c.told("default", "netctl group create -t default default-net nobody")
	c.netctl("net", "create", "-s", "50.1.0.0/24", "-g", "50.1.0.1", "nowhere")
	c.wait("--for=condition=Ready", "pod/lost") // the kubelet tries again
	c.kubectl("delete", "pod/lost", "pod/alone", "--timeout", patience.String())
}

// told waits for an event with some text.
func (c cluster) told(namespace, text string) {
	c.t.Helper()
	c.eventually("an event with "+text, func() (bool, string) {
		out := c.kubectl("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, text), out
	})
}

// restart: connections to Services go on while the agent is down and after it has come
// back, and new pods are attached.
func restart(c cluster) {
	host := c.Hosts()[0]
	if err := host.StopDaemon(c.t.Context(), "netplugin", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	ask := func(when string) {
		if out := strings.Fields(c.pod("client", get+"for i in $(seq 10); do get 10.96.1.1 80; done")); len(out) != 10 {
			c.t.Errorf("%s: answers %s", when, out)
		}
	}
	ask("without the agent")
	if err := host.StartDaemon(c.t.Context(), "netplugin"); err != nil {
		c.t.Fatal(err)
	}
	ask("with the next agent")
	c.apply(sleeper("default", "late", "host1"))
	c.wait("--for=condition=Ready", "pod/late")
	if got := c.pod("late", get+"get 10.96.1.1 80"); !strings.HasPrefix(got, "web-") {
		c.t.Errorf("a new pod gets %q", got)
	}
	c.kubectl("delete", "pod/late", "--timeout", patience.String())
}
