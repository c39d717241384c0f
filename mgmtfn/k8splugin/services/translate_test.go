package services

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

func ptr[T any](v T) *T { return &v }

// service is a Service at two addresses with a port 80 named http.
func service(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10", "fd00:96::10"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// slice has port http at 8080 and the endpoints; a protocol other than TCP by change.
func slice(name string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: family, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: ptr("http"), Port: ptr(int32(8080)), Protocol: ptr(corev1.ProtocolTCP)}},
	}
}

func withLabel(s *discoveryv1.EndpointSlice, label string) *discoveryv1.EndpointSlice {
	s.Labels[label] = ""
	return s
}

// pod is an endpoint; state is ready, unready, serving (while it terminates) or ended.
func pod(addr, name, node, state string) discoveryv1.Endpoint {
	ep := discoveryv1.Endpoint{Addresses: []string{addr}, NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name}}
	switch state {
	case "unready":
		ep.Conditions = discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(false), Terminating: ptr(false)}
	case "serving":
		ep.Conditions = discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)}
	case "ended":
		ep.Conditions = discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(false), Terminating: ptr(true)}
	}
	return ep
}

// env is a cluster of two nodes, in which 20.1.1.1 and 20.1.1.2 are pods a and b of
// tenant default on them, and 20.1.1.1 is pod r of tenant red on the second as well.
func env() surroundings {
	o := newOwners()
	put := func(key string, record any) {
		value, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		o.apply(objdb.Batch{Events: []objdb.Event{{KV: objdb.KV{Key: key, Value: value}}}})
	}
	for _, tenant := range []string{"default", "red"} {
		put(state.NetworkRoot+"net."+tenant, state.Network{Tenant: tenant})
	}
	put(state.EndpointRoot+"a", state.Endpoint{NetID: "net.default", HomingHost: "n1", EPCommonName: "a", IPAddress: "20.1.1.1", IPv6Address: "2001:db8::1"})
	put(state.EndpointRoot+"b", state.Endpoint{NetID: "net.default", HomingHost: "n2", EPCommonName: "b", IPAddress: "20.1.1.2", IPv6Address: "2001:db8::2"})
	put(state.EndpointRoot+"r", state.Endpoint{NetID: "net.red", HomingHost: "n2", EPCommonName: "r", IPAddress: "20.1.1.1"})
	return surroundings{host: "n1", node: "n1", zone: "z1", owners: o, nodes: map[netip.Addr]string{
		netip.MustParseAddr("192.168.2.10"): "n1", netip.MustParseAddr("192.168.2.11"): "n2",
	}}
}

// text is a declaration in one line for each port.
func text(all []drivers.Service) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s %v", s.ID, s.VIPs)
		if s.Affinity > 0 {
			fmt.Fprintf(&b, " affinity=%s", s.Affinity)
		}
		if s.OnlyLocal {
			b.WriteString(" local")
		}
		for _, p := range s.Ports {
			fmt.Fprintf(&b, "\n %s %d:%d", p.Name, p.Proto, p.Port)
			if p.NodePort != 0 {
				fmt.Fprintf(&b, " node=%d", p.NodePort)
			}
			for _, v := range p.Providers {
				fmt.Fprintf(&b, " %s", v.Addr)
				if v.Tenant != "" {
					fmt.Fprintf(&b, "@%s", v.Tenant)
				}
				if v.Local {
					b.WriteString(",local")
				}
				if v.Draining {
					b.WriteString(",draining")
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTranslate(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	a, b := pod("20.1.1.1", "a", "n1", "ready"), pod("20.1.1.2", "b", "n2", "ready")
	head := "shop/web [10.96.0.10 fd00:96::10]"
	hinted := func(ep discoveryv1.Endpoint, node, zone string) discoveryv1.Endpoint {
		ep.Hints = &discoveryv1.EndpointHints{}
		if node != "" {
			ep.Hints.ForNodes = []discoveryv1.ForNode{{Name: node}}
		}
		if zone != "" {
			ep.Hints.ForZones = []discoveryv1.ForZone{{Name: zone}}
		}
		return ep
	}
	udp := func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		s.Ports[0].Protocol = ptr(corev1.ProtocolUDP)
		return s
	}
	for _, c := range []struct {
		name   string
		s      *corev1.Service
		slices []*discoveryv1.EndpointSlice
		want   string
	}{
		{"nothing behind it", service(), nil, head + "\n http 6:80\n"},
		{
			"two pods", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, b, a)},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default\n",
		},
		{"both families, several slices, one pod twice", service(), []*discoveryv1.EndpointSlice{
			slice("s", v4, a), slice("t", v4, a, b), slice("u", v6, pod("2001:db8::2", "b", "n2", "ready")),
		}, head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default [2001:db8::2]:8080@default\n"},
		{
			"the pod of another tenant with the same address", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, pod("20.1.1.1", "r", "n2", "ready"), a)},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.1:8080@red\n",
		},
		{"a pod that Contiv does not know", service(), []*discoveryv1.EndpointSlice{slice("s", v4, pod("20.1.1.9", "x", "n2", "ready"))}, head + "\n http 6:80\n"},
		{
			"on hosts", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, pod("192.168.2.10", "h", "n1", "ready"), pod("192.168.2.11", "i", "n2", "ready"))},
			head + "\n http 6:80 192.168.2.10:8080,local 192.168.2.11:8080\n",
		},
		{
			"outside, without a pod", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, discoveryv1.Endpoint{Addresses: []string{"203.0.113.5"}})},
			head + "\n http 6:80 203.0.113.5:8080\n",
		},
		{
			"a name is no address", service(),
			[]*discoveryv1.EndpointSlice{slice("s", discoveryv1.AddressTypeFQDN, discoveryv1.Endpoint{Addresses: []string{"example.org"}})},
			head + "\n http 6:80\n",
		},
		{
			"ready goes before what terminates", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, a, pod("20.1.1.2", "b", "n2", "serving"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default,draining\n",
		},
		{
			"only what terminates", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, pod("20.1.1.1", "a", "n1", "ended"), pod("20.1.1.2", "b", "n2", "serving"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local,draining 20.1.1.2:8080@default\n",
		},
		{
			"unready keeps its connections", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, pod("20.1.1.1", "a", "n1", "unready"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local,draining\n",
		},
		{
			"but not those of UDP", service(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }),
			[]*discoveryv1.EndpointSlice{udp(slice("s", v4, pod("20.1.1.1", "a", "n1", "unready"), b))},
			head + "\n http 17:80 20.1.1.2:8080@default\n",
		},
		{"a slice with another protocol", service(), []*discoveryv1.EndpointSlice{udp(slice("s", v4, a))}, head + "\n http 6:80\n"},
		{
			"SCTP and a node port", service(func(s *corev1.Service) {
				s.Spec.Ports[0].Protocol, s.Spec.Ports[0].NodePort = corev1.ProtocolSCTP, 30080
			}), nil,
			head + "\n http 132:80 node=30080\n",
		},
		{"affinity", service(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }), nil, head + " affinity=3h0m0s\n http 6:80\n"},
		{"affinity of a minute", service(func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr(int32(60))}}
		}), nil, head + " affinity=1m0s\n http 6:80\n"},
		{"internal traffic stays on the node", service(func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
			s.Spec.ExternalIPs = []string{"198.51.100.7"}
		}), []*discoveryv1.EndpointSlice{slice("s", v4, a, b)}, head + " local\n http 6:80 20.1.1.1:8080@default,local\n" +
			"shop/web+external [198.51.100.7]\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default\n"},
		{"local, and only what terminates is there", service(func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
		}), []*discoveryv1.EndpointSlice{slice("s", v4, pod("20.1.1.1", "a", "n1", "serving"), b)}, head + " local\n http 6:80 20.1.1.1:8080@default,local\n"},
		{"external addresses", service(func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"198.51.100.7", "192.168.2.10", "no address", "10.96.0.10"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
				{IP: "198.51.100.8"},
				{IP: "198.51.100.9", IPMode: ptr(corev1.LoadBalancerIPModeVIP)},
				{IP: "198.51.100.10", IPMode: ptr(corev1.LoadBalancerIPModeProxy)},
				{Hostname: "example.org"},
			}
		}), nil, "shop/web [10.96.0.10 fd00:96::10 198.51.100.7 198.51.100.8 198.51.100.9]\n http 6:80\n"},
		{"a load balancer that does not let everybody in", service(func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.8"}}
		}), nil, head + "\n http 6:80\n"},
		{
			"hints to the zone", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, hinted(a, "", "z1"), hinted(b, "", "z2"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default,draining\n",
		},
		{
			"hints to the node go first", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, hinted(a, "n2", "z1"), hinted(b, "n1", "z2"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local,draining 20.1.1.2:8080@default\n",
		},
		{
			"hints that not all have", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, hinted(a, "", "z1"), b)},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default\n",
		},
		{
			"hints to elsewhere", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, hinted(a, "", "z2"), hinted(b, "", "z3"))},
			head + "\n http 6:80 20.1.1.1:8080@default,local 20.1.1.2:8080@default\n",
		},
		{"headless", service(func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }), nil, ""},
		{"without an address yet", service(func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil }), nil, ""},
		{"a name elsewhere", service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }), nil, ""},
		{"of another proxy", service(func(s *corev1.Service) {
			s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "x"}
		}), nil, ""},
		{
			"slices that are not for proxies, or for another one", service(),
			[]*discoveryv1.EndpointSlice{slice("s", v4, a), withLabel(slice("h", v4, b), corev1.IsHeadlessService), withLabel(slice("o", v4, b), "service.kubernetes.io/service-proxy-name")},
			head + "\n http 6:80 20.1.1.1:8080@default,local\n",
		},
		{"headless by label", service(func(s *corev1.Service) { s.Labels = map[string]string{"service.kubernetes.io/headless": ""} }), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, text(translate(c.s, c.slices, env()))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The order of slices and endpoints means nothing, a connection is never led to what is
// neither ready nor serving, and whenever something ready is there, somebody takes
// connections.
func TestChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) candidate {
			c := candidate{ready: rapid.Bool().Draw(t, "ready"), farther: rapid.Bool().Draw(t, "farther")}
			c.leaving = !c.ready && rapid.Bool().Draw(t, "leaving")
			c.farther = c.farther && c.ready
			c.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "addr")}), 80)
			return c
		}), 0, 8).Draw(t, "candidates")
		got := choose(all, 6)
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		if diff := cmp.Diff(got, choose(shuffled, 6), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Fatalf("the order matters: %s", diff)
		}
		near, takes := false, false
		for _, c := range all {
			near = near || c.ready && !c.farther
		}
		for _, p := range got {
			takes = takes || !p.Draining
			fit := slices.ContainsFunc(all, func(c candidate) bool { return c.Addr == p.Addr && (c.ready || c.leaving) })
			if !p.Draining && !fit {
				t.Fatalf("%v takes connections", p)
			}
		}
		if near && !takes {
			t.Fatal("something is ready, but nobody takes connections")
		}
	})
}

func TestAffinityIsAtLeastNothing(t *testing.T) {
	if got := affinity(service()); got != 0 {
		t.Errorf("affinity %s of a Service without", got)
	}
	if got := affinity(service(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })); got != 3*time.Hour {
		t.Errorf("affinity %s, expected 3h", got)
	}
}
