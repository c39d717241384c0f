package systemtests

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestNetworkPolicy: policies of Kubernetes hold at both ends of connections, on the same
// host and across hosts, while they change and while agents restart; hosts reach their
// pods whatever is denied.
func TestNetworkPolicy(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	pod := func(name string, ips ...string) object {
		addresses := []object{}
		for _, ip := range ips {
			addresses = append(addresses, object{"ip": ip})
		}
		return object{
			"metadata": object{"namespace": "default", "name": name, "labels": object{"app": name}},
			"status":   object{"phase": "Running", "podIPs": addresses},
		}
	}
	names := map[string]string{"web": "host1", "app": "host1", "far": "host2"}
	policy := func(name, of string, spec object) object {
		spec["podSelector"] = object{"matchLabels": object{"app": of}}
		return object{"metadata": object{"namespace": "default", "name": name}, "spec": spec}
	}
	deny := policy("deny", "web", object{"policyTypes": []string{"Ingress"}})
	api := objectsOn(c, map[string][]object{
		"namespaces": {{"metadata": object{"name": "default"}}}, "pods": {pod("web"), pod("app"), pod("far")}, "networkpolicies": {deny},
	}, "host1", "host2")

	// A pod is subject to what there is when it comes up.
	containers, pods := map[string]lab.Container{}, []object{}
	for name, host := range names {
		containers[name] = c.attach(host, name, "net")
		pods = append(pods, pod(name, containers[name].IPv4, containers[name].IPv6))
	}
	web := containers["web"]
	c.listen("web", 80, 81)
	soon := func(step string, want map[string]bool) {
		t.Helper()
		for _, address := range []string{web.IPv4, web.IPv6} {
			for from, ok := range want {
				c.eventually(fmt.Sprintf("%s: connected %t from %s to %s", step, ok, from, address), func() error {
					_, err := c.Output(t.Context(), from, "nc", "-z", "-w", "1", address, "80")
					if (err == nil) != ok {
						return fmt.Errorf("connected %t", err == nil)
					}
					return nil
				})
			}
		}
	}
	soon("nobody may enter", map[string]bool{"app": false, "far": false})
	c.eventually("the host reaches its pod", func() error {
		_, err := c.Output(t.Context(), "host1", "nc", "-z", "-w", "1", web.IPv4, "80")
		return err
	})
	api.set("pods", pods...)
	from := func(peer string) object {
		return object{"policyTypes": []string{"Ingress"}, "ingress": []object{{
			"from": []object{{"podSelector": object{"matchLabels": object{"app": peer}}}}, "ports": []object{{"protocol": "TCP", "port": 80}},
		}}}
	}
	far := policy("far", "web", from("far"))
	api.set("networkpolicies", deny, far)
	soon("one of another host may", map[string]bool{"app": false, "far": true})
	noneGone1, noneGone2 := c.watchFlows("host1"), c.watchFlows("host2")
	for _, host := range []string{"host1", "host2"} {
		c.restart(host, "netplugin", syscall.SIGKILL)
	}
	soon("the agents have restarted", map[string]bool{"app": false, "far": true})
	noneGone1()
	noneGone2()
	api.set("networkpolicies", policy("out", "far", object{"policyTypes": []string{"Egress"}}))
	soon("it may not leave", map[string]bool{"app": true, "far": false})
	api.set("networkpolicies")
	soon("no policy any more", map[string]bool{"app": true, "far": true})
}
