package services

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/contiv/netplugin/drivers/nodeproxy"
)

// nodeText prints what a Service is to a node, a frontend a line:
// address protocol inside / outside [only sources] [keeps more].
func nodeText(s nodeproxy.Service, ok bool) string {
	if !ok {
		return "nothing\n"
	}
	backends := func(w nodeproxy.BackendSet) string {
		var all []string
		for _, p := range w.Providers {
			all = append(all, p.String())
		}
		switch {
		case len(all) > 0:
			return strings.Join(all, " ")
		case w.Silent:
			return "silence"
		}
		return "refusal"
	}
	var b strings.Builder
	if s.Affinity > 0 || s.HealthPort > 0 {
		fmt.Fprintf(&b, "affinity %s, health port %d: %d\n", s.Affinity, s.HealthPort, s.Healthy)
	}
	for _, frontend := range s.Frontends {
		fmt.Fprintf(&b, "%s %d %s", frontend.Addr, frontend.Proto, backends(frontend.Inside))
		if out := backends(frontend.Outside); out != backends(frontend.Inside) {
			fmt.Fprintf(&b, " / %s", out)
		}
		if frontend.Sources != nil {
			fmt.Fprintf(&b, " only %v", frontend.Sources)
		}
		if fmt.Sprint(frontend.Keeps) != fmt.Sprint(frontend.Inside.Providers) {
			fmt.Fprintf(&b, " keeps %v", frontend.Keeps)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestOnNode(t *testing.T) {
	four := func(endpoints ...discoveryv1.Endpoint) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{slice("four", discoveryv1.AddressTypeIPv4, endpoints...)}
	}
	single := func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.10"} }
	nodePort := func(s *corev1.Service) {
		single(s)
		s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
	}
	localOutside := func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 31000
	}
	balancer := func(s *corev1.Service) {
		nodePort(s)
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
			{IP: "203.0.113.1"}, {IP: "203.0.113.2", IPMode: ptr(corev1.LoadBalancerIPModeProxy)}, {Hostname: "lb.example"},
		}
	}
	both := four(pod("20.1.1.1", "a", "n1", "ready"), pod("20.1.1.2", "b", "n2", "ready"))
	for _, c := range []struct {
		name    string
		service *corev1.Service
		slices  []*discoveryv1.EndpointSlice
		want    string
	}{
		{"both families", service(nodePort, func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.10", "fd00:96::10"} }), append(both,
			slice("six", discoveryv1.AddressTypeIPv6, pod("2001:db8::2", "b", "n2", "ready"))), `10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080
[fd00:96::10]:80 6 [2001:db8::2]:8080
0.0.0.0:30080 6 20.1.1.1:8080 20.1.1.2:8080
[::]:30080 6 [2001:db8::2]:8080
`},
		{"without node ports", service(single), both, "10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080\n"},
		{"the pod of a tenant that the node does not mean", service(single), four(pod("20.1.1.1", "r", "n2", "ready"), pod("20.1.1.2", "b", "n2", "ready")), "10.96.0.10:80 6 20.1.1.2:8080\n"},
		{"hosts", service(single), four(discoveryv1.Endpoint{Addresses: []string{"192.168.2.11"}}), "10.96.0.10:80 6 192.168.2.11:8080\n"},
		{"nobody", service(nodePort), nil, "10.96.0.10:80 6 refusal\n0.0.0.0:30080 6 refusal\n"},
		{"one that terminates", service(single), four(pod("20.1.1.1", "a", "n1", "serving"), pod("20.1.1.2", "b", "n2", "ready")), "10.96.0.10:80 6 20.1.1.2:8080 keeps [20.1.1.1:8080 20.1.1.2:8080]\n"},
		{"all terminate", service(single), four(pod("20.1.1.1", "a", "n1", "serving"), pod("20.1.1.2", "b", "n2", "serving")), "10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080\n"},
		{"affinity", service(single, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }), both, "affinity 3h0m0s, health port 0: 0\n10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080\n"},
		{"external traffic stays local", service(balancer, localOutside), both, `affinity 0s, health port 31000: 1
10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080
203.0.113.1:80 6 20.1.1.1:8080 20.1.1.2:8080 / 20.1.1.1:8080
0.0.0.0:30080 6 20.1.1.1:8080 20.1.1.2:8080 / 20.1.1.1:8080
`},
		{"external traffic stays local, to pods of both families, which are counted once", service(balancer, localOutside, func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} }), append(
			four(pod("20.1.1.1", "a", "n1", "ready")), slice("six", discoveryv1.AddressTypeIPv6, pod("2001:db8::1", "a", "n1", "ready")),
		), `affinity 0s, health port 31000: 1
10.96.0.10:80 6 20.1.1.1:8080
0.0.0.0:30080 6 20.1.1.1:8080
`},
		{"external traffic stays local, where nobody is", service(nodePort, localOutside), four(pod("20.1.1.2", "b", "n2", "ready")), `affinity 0s, health port 31000: 0
10.96.0.10:80 6 20.1.1.2:8080
0.0.0.0:30080 6 20.1.1.2:8080 / silence
`},
		{"external traffic stays local, to one that terminates", service(nodePort, localOutside), four(pod("20.1.1.1", "a", "n1", "serving"), pod("20.1.1.2", "b", "n2", "ready")), `affinity 0s, health port 31000: 0
10.96.0.10:80 6 20.1.1.2:8080 keeps [20.1.1.1:8080 20.1.1.2:8080]
0.0.0.0:30080 6 20.1.1.2:8080 / 20.1.1.1:8080 keeps [20.1.1.1:8080 20.1.1.2:8080]
`},
		{"internal traffic stays local", service(nodePort, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal) }), four(pod("20.1.1.2", "b", "n2", "ready")), `10.96.0.10:80 6 silence keeps [20.1.1.2:8080]
0.0.0.0:30080 6 20.1.1.2:8080
`},
		{"addresses from outside, also of nodes", service(single, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.9", "192.168.2.10", "bad"} }), both, `10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080
203.0.113.9:80 6 20.1.1.1:8080 20.1.1.2:8080
192.168.2.10:80 6 20.1.1.1:8080 20.1.1.2:8080
`},
		{"a balancer for some", service(balancer, func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "nonsense"} }), both, `10.96.0.10:80 6 20.1.1.1:8080 20.1.1.2:8080
203.0.113.1:80 6 20.1.1.1:8080 20.1.1.2:8080 only [198.51.100.0/24]
0.0.0.0:30080 6 20.1.1.1:8080 20.1.1.2:8080
`},
		{"a headless one", service(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), both, "nothing\n"},
	} {
		got, ok := onNode(c.service, c.slices, env())
		if diff := cmp.Diff(c.want, nodeText(got, ok)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
