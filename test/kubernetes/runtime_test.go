//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// TestRuntimes is what container runtimes of both generations make of Contiv, and what
// becomes of pods while parts of it are down: host1 has containerd 1.6, host2 2.3.
func TestRuntimes(t *testing.T) {
	c := cluster{labtest.Up(t, lab.Config{Hosts: 2, Kubernetes: true, Containerd: []string{lab.ContainerdPacked, lab.ContainerdBuilt}}), t}
	c.nodesReady()
	c.wait("--for=create", "serviceaccount/default")
	c.run("results are of the runtime's version", versions)
	c.run("ports of the host", hostPorts)
	c.run("a node that loses its power", powerCut)
	c.run("a pod from a file", staticPod)
	c.run("a node without switch is not ready", withoutSwitch)
	c.run("pods without the agent", withoutAgent)
	c.run("pods without netmaster", withoutMaster)
	c.run("pods without the API server", withoutAPI)
	c.run("sandboxes recreated", newSandbox)
	c.run("nothing is left", func(c cluster) {
		c.settled()
		c.kubectl("delete", "pod", "--all", "--timeout", patience.String())
		c.settled()
	})
}

// server is a pod that answers with its name to HTTP on port 80, and on a port of its
// host.
func server(name, host string, hostPort int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  nodeName: %s
  containers:
    - name: main
      image: %s
      command: [sh, -c, "mkdir -p /www; hostname >/www/index.html; exec httpd -f -p 80 -h /www"]
      ports: [{containerPort: 80, hostPort: %d}]
---
`, name, host, lab.KubeImage, hostPort)
}

func versions(c cluster) {
	c.apply(server("old", "host1", 8080) + server("new", "host2", 8080))
	c.wait("--for=condition=Ready", "pod/old", "pod/new")
	for i, want := range []string{"1.0.0", "1.1.0"} {
		h := c.Hosts()[i]
		out, err := h.Output(c.t.Context(), "sh", "-c", "cat /var/lib/cni/results/contiv-net-*")
		if err != nil {
			c.t.Fatal(err)
		}
		var record struct {
			Result struct {
				CNIVersion string
				Interfaces []struct {
					Name, Sandbox string
					MTU           int
				}
				IPs    []struct{ Address, Gateway string }
				Routes []struct{ Dst string }
			}
		}
		if err := json.Unmarshal([]byte(out), &record); err != nil {
			c.t.Fatalf("%v in %s", err, out)
		}
		r := record.Result
		if r.CNIVersion != want || len(r.Interfaces) != 2 || len(r.IPs) == 0 || len(r.Routes) == 0 {
			c.t.Errorf("%s: result %+v, expected a whole one of version %s", h.Name, r, want)
		}
	}
}

// hostPorts: portmap, behind Contiv, makes them reachable from the host and from outside.
func hostPorts(c cluster) {
	for i, name := range []string{"old", "new"} {
		for _, from := range c.Hosts() {
			at := c.Hosts()[i].ControlIP()
			c.eventually(fmt.Sprintf("an answer of %s to %s", name, from.Name), func() (bool, string) {
				out, err := from.Output(c.t.Context(), "sh", "-c", get+"get "+at+" 8080")
				return out == name, fmt.Sprint(out, err)
			})
		}
	}
}

// staticPod: the kubelet knows it by another UID than the API server.
func staticPod(c cluster) {
	host := c.Hosts()[1]
	manifest := strings.ReplaceAll(sleeper("default", "static", ""), "---\n", "")
	if err := host.Run(c.t.Context(), lab.Stdio{In: strings.NewReader(manifest)}, "sh", "-c", "cat >/etc/kubernetes/manifests/static.yaml"); err != nil {
		c.t.Fatal(err)
	}
	c.wait("--for=create", "pod/static-host2")
	c.wait("--for=condition=Ready", "pod/static-host2")
	if _, err := host.Output(c.t.Context(), "rm", "/etc/kubernetes/manifests/static.yaml"); err != nil {
		c.t.Fatal(err)
	}
	c.wait("--for=delete", "pod/static-host2")
}

// stop kills a daemon.
func (c cluster) stop(host *lab.Host, name string) {
	c.t.Helper()
	if err := host.StopDaemon(c.t.Context(), name, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
}

func (c cluster) start(host *lab.Host, name string) {
	c.t.Helper()
	if err := host.StartDaemon(c.t.Context(), name); err != nil {
		c.t.Fatal(err)
	}
}

// notReady waits until a node is not ready for some reason.
func (c cluster) notReady(node, why string) {
	c.t.Helper()
	c.eventually(node+" not ready: "+why, func() (bool, string) {
		out := c.kubectl("get", "node", node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		return strings.Contains(out, `"status":"False"`) && strings.Contains(out, why), out
	})
}

// withoutSwitch: a runtime of CNI 1.1 asks for the plugin's status.
func withoutSwitch(c cluster) {
	host := c.Hosts()[1]
	c.stop(host, "ovs-vswitchd")
	c.notReady("host2", "the switch is not ready")
	c.start(host, "ovs-vswitchd")
	c.wait("--for=condition=Ready", "node/host2")
}

// withoutAgent: pods end, and others start when it is back. A runtime of CNI 1.1 notices
// before any pod does.
func withoutAgent(c cluster) {
	for _, h := range c.Hosts() {
		c.stop(h, "netplugin")
	}
	c.notReady("host2", "is netplugin running?")
	c.kubectl("delete", "pod/old", "pod/new", "--timeout", patience.String())
	c.apply(server("early", "host1", 8081))
	c.told("default", "is netplugin running?")
	for _, h := range c.Hosts() {
		c.start(h, "netplugin")
	}
	c.nodesReady()
	c.wait("--for=condition=Ready", "pod/early")
}

// withoutMaster: the same, and the deletion outlives the agent.
func withoutMaster(c cluster) {
	host := c.Hosts()[0]
	c.stop(host, "netmaster")
	c.kubectl("delete", "pod/early", "--timeout", patience.String())
	c.apply(server("early", "host1", 8081))
	c.told("default", "netmaster")
	c.stop(host, "netplugin")
	c.start(host, "netmaster")
	c.start(host, "netplugin")
	c.wait("--for=condition=Ready", "pod/early")
}

// withoutAPI: the plugin says that it is to be asked again, and what is missing.
func withoutAPI(c cluster) {
	host := c.Hosts()[0]
	c.stop(host, "kube-apiserver")
	defer func() {
		c.start(host, "kube-apiserver")
		c.nodesReady()
	}()
	if _, err := host.Output(c.t.Context(), "ip", "netns", "add", "by-hand"); err != nil {
		c.t.Fatal(err)
	}
	var ce *types.Error
	if err := c.call(host, "ADD", "by-hand"); !errors.As(err, &ce) || ce.Code != cni.CodeTryLater || !strings.Contains(ce.Details, "ask the API server for") {
		c.t.Errorf("ADD: %+v, expected code %d and to be told who is missing", err, cni.CodeTryLater)
	}
	if err := c.call(host, "DEL", "by-hand"); err != nil {
		c.t.Errorf("DEL: %v", err)
	}
	if _, err := host.Output(c.t.Context(), "ip", "netns", "del", "by-hand"); err != nil {
		c.t.Fatal(err)
	}
}

// call runs the plugin in a host as its runtime does for a pod, in the namespace of that
// name. The error is what the plugin says.
func (c cluster) call(h *lab.Host, verb, name string) error {
	c.t.Helper()
	var out bytes.Buffer
	err := h.Run(c.t.Context(), lab.Stdio{
		In:  strings.NewReader(`{"cniVersion":"1.0.0","name":"contiv-net","type":"contivk8s"}`),
		Out: &out, Env: []string{
			"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + name, "CNI_NETNS=/run/netns/" + name, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin",
			"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + name,
		},
	}, "/opt/cni/bin/contivk8s")
	if err == nil {
		return nil
	}
	var said types.Error
	if errors.As(err, new(*exec.ExitError)) && json.Unmarshal(out.Bytes(), &said) == nil {
		return &said
	}
	c.t.Fatalf("%s of %s: %v: %s", verb, name, err, out.String())
	return nil
}

// powerCut: pods that are still wanted come back. What was on the node of one that nobody
// wants any more is nobody's business but ours: the last step looks for it.
func powerCut(c cluster) {
	c.apply(server("wanted", "host2", 8082) + sleeper("default", "unwanted", "host2"))
	c.wait("--for=condition=Ready", "pod/wanted", "pod/unwanted")
	if err := c.PowerOff(c.t.Context(), "host2"); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("delete", "pod/unwanted", "--force", "--grace-period=0")
	if err := c.PowerOn(c.t.Context(), "host2"); err != nil {
		c.t.Fatal(err)
	}
	c.wait("--for=condition=Ready", "node/host2")
	at := c.Hosts()[1].ControlIP()
	c.eventually("an answer of the pod that came back", func() (bool, string) {
		out, err := c.Hosts()[0].Output(c.t.Context(), "sh", "-c", get+"get "+at+" 8082")
		return out == "wanted", fmt.Sprint(out, err)
	})
}

// newSandbox: one that its runtime has lost is created again, with an endpoint of its own.
func newSandbox(c cluster) {
	host := c.Hosts()[1]
	before := c.endpointOf("wanted")
	// The sandbox's process is the only one of its image.
	if _, err := host.Output(c.t.Context(), "sh", "-c", "kill -9 $(ps -eo pid,args | awk '$2 == \"/bin/sleep\" && $3 == \"1000000000\" {print $1}')"); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("another endpoint", func() (bool, string) {
		now := c.endpointOf("wanted")
		return now != "" && now != before, now
	})
	c.wait("--for=condition=Ready", "pod/wanted")
}

// endpointOf is the container that has the address of a pod, by what netmaster knows.
func (c cluster) endpointOf(pod string) string {
	c.t.Helper()
	all, err := c.addresses(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return all[c.kubectl("get", "pod/"+pod, "-o", "jsonpath={.status.podIP}")]
}
