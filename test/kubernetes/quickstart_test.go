//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/install/image"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// Sections of docs/kubernetes.md that are followed.
const (
	quickStart = "Quick start"
	logins     = "TLS and logins"
	changes    = "Configuration changes and upgrades"
	noSwitch   = "Nodes without Open vSwitch"
	ownEtcd    = "External etcd"
	leave      = "Uninstall"
)

// tunnels is how contiv.yaml is edited for nodes with a network of their own for tunnels.
func tunnels(more ...string) []string {
	return append([]string{`contiv_vtep_network: ""`, "contiv_vtep_network: 192.168.60.0/24"}, more...)
}

// formerSettings are what the ConfigMap of earlier releases has, besides.
const formerSettings = `contiv_mode: kubernetes
  contiv_cni_config: '{"cniVersion": "0.3.1", "name": "contiv-net", "type": "contivk8s"}'
  contiv_k8s_config: |
    {
       "K8S_API_SERVER": "https://__KUBERNETES_SERVICE_HOST__:__KUBERNETES_SERVICE_PORT__",
       "K8S_CA": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
       "K8S_KEY": "", "K8S_CERT": "", "K8S_TOKEN": "", "SVC_SUBNET": "10.96.0.0/12"
    }`

// TestQuickStart does what docs/kubernetes.md says, as it is written there, on a cluster
// that has no network: Contiv runs from its image, with the rights of its own accounts.
func TestQuickStart(t *testing.T) {
	g := openGuide(cluster{labtest.Up(t, lab.Config{Hosts: 2, Masters: 2, Store: lab.StoreEtcd, Kubernetes: true, Bare: true, Containerd: []string{lab.ContainerdPacked, lab.ContainerdBuilt}}), t})
	before := g.hosts()
	g.run("install", func(g guide) {
		out := g.follow(quickStart, tunnels("contiv_service_proxy: pods", "contiv_service_proxy: full")...)
		for _, want := range []struct {
			text  string
			times int
		}{{"default-net", 1}, {"20.1.0.0/16", 1}, {" mtu 1450 ", 1}, {" inet 20.1.", 1}, {" packets received", 2}, {"\nweb-", 1}} {
			if strings.Count(out, want.text) < want.times {
				g.t.Errorf("%q is not %d times in what was printed:\n%s", want.text, want.times, out)
			}
		}
	})
	g.run("closed", closed)
	g.run("metrics to be scraped", func(g guide) {
		out, err := g.try(block{script: "kubectl kustomize install/overlays/prometheus | kubectl apply --dry-run=server -o yaml -f -"})
		if n := strings.Count(out, `prometheus.io/scrape: "true"`); err != nil || n < 2 {
			g.t.Errorf("%d annotations, %v, expected those of two: %s", n, err, out)
		}
	})
	g.run("an overlay for Consul", func(g guide) {
		out, err := g.try(block{script: "kubectl kustomize install/overlays/external-consul | kubectl apply --dry-run=server -o yaml -f -"})
		if n := strings.Count(out, "key: contiv_consul"); err != nil || n != 2 || strings.Contains(out, "key: contiv_etcd") {
			g.t.Errorf("%d daemons with the setting, %v, expected 2: %s", n, err, out)
		}
	})
	g.run("policies", denied)
	g.run("changes go unnoticed", unnoticed)
	g.run("rights suffice", permitted)
	g.run("leave", func(g guide) { g.goneAfter(before) })
	g.run("Open vSwitch in pods", switchInPods)
	g.run("with an etcd cluster", func(g guide) {
		g.kubectl("label", "node", "host2", "node-role.kubernetes.io/control-plane=")
		etcd := g.secureEtcd()
		g.follow(ownEtcd, tunnels(
			"https://192.168.2.10:2379,https://192.168.2.11:2379", etcd,
			"replicas: 3", "replicas: 2", "contiv_mode: kubernetes", formerSettings,
			`contiv_default_subnet_v6: ""`, "contiv_default_subnet_v6: fd20:1::/64",
		)...)
		g.kubectl("apply", "-f", g.work+"/install/k8s/example.yaml")
		g.kubectl("rollout", "status", "deployment/web", "--timeout", slow.String())
		g.wait("--for=condition=Ready", "pod/client")
		g.kubectl("-n", "kube-system", "rollout", "restart", "deployment/contiv-netmaster") // another one leads
		g.kubectl("-n", "kube-system", "rollout", "status", "deployment/contiv-netmaster", "--timeout", slow.String())
		g.apply(talkers("host1", "host2"))
		greet(g)
		if ips := g.kubectl("get", "pod/echo", "-o", "jsonpath={.status.podIPs[*].ip}"); !strings.Contains(ips, " fd20:1::") {
			g.t.Errorf("pod echo has addresses %s", ips)
		}
		g.kubectl("delete", "pod/talker", "pod/echo", "service/echo", "--timeout", slow.String())
		if conf, err := g.Hosts()[1].Output(g.t.Context(), "cat", "/etc/cni/net.d/10-contiv.conflist"); err != nil || !strings.Contains(conf, `"0.3.1"`) {
			g.t.Errorf("CNI configuration %s, %v; expected that of contiv_cni_config", conf, err)
		}
		g.goneAfter(before)
	})
}

// switchInPods: the pods leave the nodes' Open vSwitch alone, and are one where there is
// none.
func switchInPods(g guide) {
	bridges := func() (all []string) {
		for _, h := range g.Hosts() {
			out, err := h.Output(g.t.Context(), "ovs-vsctl", "list-br")
			if err != nil {
				g.t.Fatal(err)
			}
			all = append(all, strings.Fields(out)...)
		}
		return all
	}
	before := bridges()
	g.follow(noSwitch)
	said := g.kubectl("-n", "kube-system", "logs", "-l", "k8s-app=contiv-ovs", "--all-containers")
	if strings.Count(said, "itself") != 4 {
		g.t.Errorf("beside the nodes' own Open vSwitch: %s", said)
	}
	g.kubectl("delete", "--cascade=foreground", "-f", g.work+"/install/k8s/ovs.yaml")
	if diff := cmp.Diff(before, bridges()); diff != "" {
		g.t.Errorf("bridges: %s", diff)
	}
	for _, h := range g.Hosts() {
		if err := h.StopDaemon(g.t.Context(), "ovs", syscall.SIGTERM); err != nil {
			g.t.Fatal(err)
		}
		if _, err := h.Output(g.t.Context(), "rm", "/etc/openvswitch/conf.db"); err != nil {
			g.t.Fatal(err)
		}
	}
	g.follow(noSwitch)
	for _, h := range g.Hosts() {
		if err := h.ConnectTunnel(g.t.Context()); err != nil {
			g.t.Fatal(err)
		}
	}
}

// denied: a policy holds, and holds no longer.
func denied(g guide) {
	g.apply("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: none}\nspec:\n  podSelector: {matchLabels: {app: web}}\n  policyTypes: [Ingress]\n")
	address := g.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	answers := func() bool {
		_, err := g.Kubectl(g.t.Context(), "exec", "client", "--", "sh", "-c", "nc -w 5 "+address+" 80 </dev/null")
		return err == nil
	}
	g.eventually("a policy that holds", func() (bool, string) { return !answers(), "there are answers" })
	g.kubectl("delete", "networkpolicy/none")
	g.eventually("answers again", func() (bool, string) { return answers(), "there are none" })
}

// ownPod is a pod made of Contiv's image. Deleting it takes until its node has done so.
func ownPod(name, host, command string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %[1]s}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: "%s", imagePullPolicy: IfNotPresent, command: %s}
---
`, name, host, image.Name, command)
}

// talkers are a pod that sends back what it gets, a Service before it, and a pod to talk
// to it.
func talkers(from, to string) string {
	return ownPod("talker", from, `[sleep, "1000000"]`) + ownPod("echo", to, `[nc, -ll, -p, "7", -e, cat]`) +
		"apiVersion: v1\nkind: Service\nmetadata: {name: echo}\nspec:\n  clusterIP: 10.96.7.7\n  selector: {app: echo}\n  ports: [{port: 7}]\n"
}

// greet waits until the talkers can talk, from node to node.
func greet(g guide) {
	g.wait("--for=condition=Ready", "pod/talker", "pod/echo")
	g.eventually("the Service", func() (bool, string) {
		out, err := g.Kubectl(g.t.Context(), "exec", "talker", "--", "sh", "-c", "echo hello | nc -w 5 10.96.7.7 7")
		return out == "hello", fmt.Sprint(out, err)
	})
}

// What is said to a Service over one connection, and what pings are answered, until there
// is a file /tmp/stop.
const (
	converse = `n=0; while [ ! -e /tmp/stop ]; do echo $n >>/tmp/sent; echo $n; n=$((n+1)); sleep 0.1; done | nc 10.96.7.7 7 >/tmp/got
		cmp /tmp/sent /tmp/got && echo all of $(wc -l </tmp/got) came back`
	pings = `n=0; while [ ! -e /tmp/stop ]; do ping -c 1 -W 30 %s >/dev/null || echo lost $n; n=$((n+1)); sleep 0.1; done; echo of $n`
)

// unnoticed: while netmaster and the agents are replaced, a connection goes on and pings
// are answered; afterwards networks are still there, and pods are attached.
func unnoticed(g guide) {
	netctl := []string{"-n", "kube-system", "exec", "deployment/contiv-netmaster", "--", "netctl", "net"}
	g.kubectl(append(netctl, "create", "-s", "70.1.0.0/24", "-g", "70.1.0.1", "kept")...)
	g.apply(talkers("host1", "host2"))
	greet(g)
	g.eventually("the Service on a node", func() (bool, string) {
		out, err := g.Hosts()[0].Output(g.t.Context(), "sh", "-c", "echo hello | busybox nc -w 5 10.96.7.7 7")
		return out == "hello", fmt.Sprint(out, err)
	})
	ip := g.podIPs("app=echo")["echo"]
	ctx, cancel := context.WithTimeout(g.t.Context(), slow)
	defer cancel()
	var said, lost string
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		said, err = g.Kubectl(ctx, "exec", "talker", "--", "sh", "-c", converse)
		return err
	})
	group.Go(func() (err error) {
		lost, err = g.Kubectl(ctx, "exec", "talker", "--", "sh", "-c", fmt.Sprintf(pings, ip))
		return err
	})
	g.eventually("a conversation", func() (bool, string) {
		out, err := g.Kubectl(ctx, "exec", "talker", "--", "test", "-s", "/tmp/got")
		return err == nil, out
	})
	g.follow(changes)
	g.kubectl("exec", "talker", "--", "touch", "/tmp/stop")
	if err := group.Wait(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Log(said, lost)
	// The userspace datapath drops a single packet now and then.
	if !strings.HasPrefix(said, "all of ") || strings.Count(lost, "lost") > 2 {
		g.t.Errorf("conversation: %s; pings: %s", said, lost)
	}
	if out := g.kubectl(append(netctl, "ls")...); !strings.Contains(out, "70.1.0.0/24") {
		g.t.Errorf("network kept is gone: %s", out)
	}
	g.apply(ownPod("late", "host2", `[sleep, "1000000"]`))
	g.wait("--for=condition=Ready", "pod/late")
	g.kubectl("delete", "pod/late", "pod/talker", "pod/echo", "service/echo", "--timeout", slow.String())
}

// permitted: nobody was refused anything by the API server. Of pods that are the first
// with their rights that may not hold: it learns of these a moment later.
func permitted(g guide) {
	for _, app := range []string{"contiv-netplugin", "contiv-netmaster"} {
		log := g.kubectl("-n", "kube-system", "logs", "-l", "k8s-app="+app, "--tail=-1")
		if !strings.Contains(log, "level=info") {
			g.t.Errorf("%s has logged nothing: %s", app, log)
		}
		for line := range strings.Lines(log) {
			if strings.Contains(strings.ToLower(line), "forbidden") {
				g.t.Errorf("%s: %s", app, line)
			}
		}
	}
}

// goneAfter: nothing is left on the hosts of what was not there before.
func (g guide) goneAfter(before []string) {
	g.t.Helper()
	g.follow(leave)
	g.eventually("nothing left", func() (bool, string) { // the switch takes a moment
		diff := cmp.Diff(before, g.hosts())
		return diff == "", diff
	})
}

// hosts are the links, bridges, rules, routes, settings and files of the hosts, but for
// what the kernel and the kubelet make when it is convenient.
func (g guide) hosts() (all []string) {
	g.t.Helper()
	const script = `ls /sys/class/net | sed 's/^/link /'
ovs-vsctl list-br | sed 's/^/bridge /'
nft list tables | grep -i contiv || true
ip route; ip -6 route | grep -v '^fe80' || true
ip rule
echo forward $(cat /proc/sys/net/ipv4/ip_forward)
ls /etc/cni/net.d /opt/cni/bin /run/netns`
	for _, h := range g.Hosts() {
		out, err := h.Output(g.t.Context(), "sh", "-ec", script)
		if err != nil {
			g.t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			all = append(all, h.Name+": "+strings.TrimSpace(line))
		}
	}
	return all
}
