package systemtests

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// clusterIP and nodePort are where the Service of TestNodePort is.
const clusterIP, clusterIP6, nodePort = "10.96.0.10", "2001:db8:96::10", "30080"

// TestNodePort: agents that stand in for kube-proxy lead clients on their own host, on
// another one and in containers to a Service of Kubernetes, at its address and at its node
// port, in both families, whether its provider is on the node or on another one, and after
// restarts.
func TestNodePort(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, AgentFlags: []string{"--service-proxy", lab.ProxyFull}})
	nodes := map[string][]string{"host1": {"192.168.2.10", "fd00:2::1"}, "host2": {"192.168.2.11", "fd00:2::2"}}
	for host, own := range nodes {
		c.run(host, "ip addr add "+own[1]+"/64 dev eth0 nodad")
		// Nodes need a route to the addresses of Services, which a default route is elsewhere.
		c.run(host, "ip route add 10.96.0.0/16 dev eth0; ip -6 route add 2001:db8:96::/64 dev eth0")
	}
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	providers := map[string]lab.Container{"near": c.attach("host1", "near", "net"), "far": c.attach("host2", "far", "net")}
	c.attach("host1", "client", "net")
	for name := range providers {
		c.serveHTTP(name)
	}
	api := objectsOn(c, map[string][]object{
		"services": {webService("Local")}, "endpointslices": slicesOf(providers["near"]),
	}, "host1", "host2")

	fronts := func(host string) (all []string) {
		for _, address := range nodes[host] {
			all = append(all, net.JoinHostPort(address, nodePort))
		}
		return all
	}
	cluster4and6 := []string{net.JoinHostPort(clusterIP, "80"), net.JoinHostPort(clusterIP6, "80")}
	t.Run("the provider sees who asks", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for i, address := range fronts("host1") {
			c.answers("host2", address, "near to "+nodes["host2"][i])
		}
	})
	everywhere := func(t *testing.T, provider string) {
		c := cluster{c.Lab, t}
		for _, host := range []string{"host1", "host2"} {
			for _, from := range []string{"host1", "host2", "client"} {
				for _, address := range append(fronts(host), cluster4and6...) {
					c.answers(from, address, provider+" to ")
				}
			}
		}
	}
	for _, name := range []string{"near", "far"} {
		api.set("services", webService("Cluster"))
		api.set("endpointslices", slicesOf(providers[name])...)
		t.Run("everybody reaches "+name, func(t *testing.T) { everywhere(t, name) })
	}
	t.Run("after restarts", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.restart("host1", "netplugin", syscall.SIGKILL)
		c.restart("host2", "ovs", syscall.SIGKILL)
		everywhere(t, "far")
	})
	t.Run("nobody is there any more", func(t *testing.T) {
		c := cluster{c.Lab, t}
		api.set("services")
		for _, own := range append(nodes["host1"], nodes["host2"]...) {
			c.becomes("host1", "! nc -z -w 1 "+own+" "+nodePort)
		}
	})
}

// webService is a Service of both families, with a policy for who comes from outside.
func webService(outside string) object {
	return object{
		"metadata": object{"namespace": "default", "name": "web"},
		"spec": object{
			"type": "NodePort", "clusterIP": clusterIP, "clusterIPs": []string{clusterIP, clusterIP6}, "ipFamilies": []string{"IPv4", "IPv6"},
			"externalTrafficPolicy": outside, "internalTrafficPolicy": "Cluster",
			"ports": []object{{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}},
		},
	}
}

// slicesOf are the EndpointSlices of webService with one provider.
func slicesOf(provider lab.Container) (all []object) {
	for family, address := range map[string]string{"IPv4": provider.IPv4, "IPv6": provider.IPv6} {
		all = append(all, object{
			"metadata":    object{"namespace": "default", "name": "web-" + strings.ToLower(family), "labels": object{"kubernetes.io/service-name": "web"}},
			"addressType": family,
			"endpoints":   []object{{"addresses": []string{address}, "nodeName": provider.Host, "conditions": object{"ready": true}}},
			"ports":       []object{{"name": "http", "protocol": "TCP", "port": 8080}},
		})
	}
	return all
}
