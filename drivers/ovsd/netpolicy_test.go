package ovsd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubetest "k8s.io/client-go/tools/cache/testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/mgmtfn/k8spolicy"
)

// podDriver knows which pod each endpoint belongs to.
type podDriver struct {
	*Driver
	pods map[string]string // <namespace>/<name> by endpoint id
}

func (d podDriver) Attachments() []drivers.Attachment {
	all := d.Driver.Attachments()
	for i := range all {
		all[i].Pod = d.pods[all[i].EndpointID]
	}
	return all
}

// policed is three pods of this host in two namespaces, and an API server that knows them.
type policed struct {
	t                          *testing.T
	pods, namespaces, policies *kubetest.FakeControllerSource
	containers                 map[string]container
}

// TestInsideNetworkPolicies has real connections, by TCP and UDP and in both families,
// follow the policies of an API server.
func TestInsideNetworkPolicies(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	for _, mode := range []string{"routing", "bridge"} {
		t.Run(mode, func(t *testing.T) {
			d, _ := runDriver(t, testConfig(dir))
			global := contract.Global
			global.FwdMode = mode
			d.Apply(global)
			d.Apply(contract.Network)
			d.Synced(drivers.SourceStore)
			p := &policed{
				t: t, pods: kubetest.NewFakeControllerSource(), namespaces: kubetest.NewFakeControllerSource(), policies: kubetest.NewFakeControllerSource(),
				containers: map[string]container{},
			}
			known := podDriver{d, map[string]string{}}
			p.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"team": "x"}}})
			p.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "y", Labels: map[string]string{"team": "y"}}})
			for i, name := range []string{"x/web", "x/app", "y/other"} {
				c := newContainer(t, d, i+1)
				p.containers[name], known.pods[c.ep.ID] = c, name
				p.serve(c)
				p.pods.Add(p.pod(name, nil))
			}
			p.run(known)
			p.matrix()
		})
	}
}

// pod is a pod for a container, labeled with its own name unless labels are given.
func (p *policed) pod(name string, labels map[string]string) *corev1.Pod {
	ep := p.containers[name].ep
	if labels == nil {
		labels = map[string]string{"app": name[2:]}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name[:1], Name: name[2:], Labels: labels}}
	pod.Status.PodIPs = []corev1.PodIP{{IP: ep.IPv4.String()}, {IP: ep.IPv6.String()}}
	pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "alt", ContainerPort: 81, Protocol: corev1.ProtocolTCP}}}}
	return pod
}

func (p *policed) run(d podDriver) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := k8spolicy.New(k8spolicy.Config{Pods: p.pods, Namespaces: p.namespaces, NetworkPolicies: p.policies, Driver: d, Patience: time.Minute, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
		for id := range d.pods {
			d.Delete(drivers.KindEndpointPolicy, id)
		}
	})
	for name := range p.containers {
		if err := c.Await(p.t.Context(), name[:1], name[2:], ""); err != nil {
			p.t.Fatal(err)
		}
	}
}

// serve has a container echo TCP on ports 80 and 81, and UDP on port 53.
func (p *policed) serve(c container) {
	p.t.Helper()
	for _, a := range []netip.Addr{c.ep.IPv4, c.ep.IPv6} {
		for _, port := range []uint16{80, 81} {
			var l net.Listener
			c.inside(p.t, func() (err error) {
				l, err = net.Listen("tcp", netip.AddrPortFrom(a, port).String())
				return err
			})
			serveStream(p.t, l, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
		}
		var conn *net.UDPConn
		c.inside(p.t, func() (err error) {
			conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 53)))
			return err
		})
		serveDatagrams(p.t, conn, func(b []byte) []byte { return b })
	}
}

// answered reports whether a new connection gets an answer promptly.
func (p *policed) answered(from, to, proto string, port uint16, six bool) bool {
	a := p.containers[to].ep.IPv4
	if six {
		a = p.containers[to].ep.IPv6
	}
	ok := false
	p.containers[from].inside(p.t, func() error {
		conn, err := net.DialTimeout(proto, netip.AddrPortFrom(a, port).String(), 300*time.Millisecond)
		if err != nil {
			return nil
		}
		defer conn.Close()
		b := []byte("?")
		if conn.SetDeadline(time.Now().Add(300*time.Millisecond)) == nil {
			if _, err = conn.Write(b); err == nil {
				_, err = io.ReadFull(conn, b)
			}
			ok = err == nil
		}
		return nil
	})
	return ok
}

// expect waits until connections pass or fail as expected, in both families.
func (p *policed) expect(step string, passes map[string]bool) {
	p.t.Helper()
	for probe, want := range passes {
		var from, to, proto string
		var port uint16
		if _, err := fmt.Sscan(probe, &from, &to, &proto, &port); err != nil {
			p.t.Fatal(err)
		}
		for _, six := range []bool{false, true} {
			deadline := time.Now().Add(patience)
			for p.answered(from, to, proto, port, six) != want {
				if time.Now().After(deadline) {
					p.t.Fatalf("%s: %s, IPv6 %t: passes %t", step, probe, six, !want)
				}
			}
		}
	}
}

func (p *policed) matrix() {
	selector := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	number, name := intstr.FromInt32, intstr.FromString
	policy := func(policyName string, pods *metav1.LabelSelector, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
		spec.PodSelector = *pods
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: policyName}, Spec: spec}
	}
	in := func(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}},
		}
	}
	out := func(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: ports}},
		}
	}
	port := func(proto *corev1.Protocol, port intstr.IntOrString) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: proto, Port: &port}
	}
	everybody := &metav1.LabelSelector{}
	web := selector("app", "web")

	p.expect("no policy", map[string]bool{"x/app x/web tcp 80": true, "y/other x/web udp 53": true})
	deny := policy("deny", everybody, networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}})
	p.policies.Add(deny)
	p.expect("nobody may enter", map[string]bool{
		"x/app x/web tcp 80": false, "y/other x/web udp 53": false, "x/web x/app tcp 81": false, "x/app y/other tcp 80": true,
	})
	p.policies.Add(policy("app", web, in([]networkingv1.NetworkPolicyPeer{{PodSelector: selector("app", "app")}}, port(&tcp, number(80)), port(&udp, number(53)))))
	p.expect("one pod may, at some ports", map[string]bool{
		"x/app x/web tcp 80": true, "x/app x/web udp 53": true, "x/app x/web tcp 81": false, "y/other x/web tcp 80": false,
	})
	p.policies.Add(policy("team", web, in([]networkingv1.NetworkPolicyPeer{{NamespaceSelector: selector("team", "y"), PodSelector: selector("app", "other")}}, port(nil, name("alt")))))
	p.expect("a pod of another namespace may, at a named port", map[string]bool{
		"y/other x/web tcp 81": true, "y/other x/web tcp 80": false, "x/app x/web tcp 80": true, "x/app x/web tcp 81": false,
	})
	p.namespaces.Modify(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "y", Labels: map[string]string{"team": "z"}}})
	p.expect("its namespace is labelled otherwise", map[string]bool{"y/other x/web tcp 81": false, "x/app x/web tcp 80": true})
	p.pods.Modify(p.pod("x/app", map[string]string{"app": "none"}))
	p.expect("the pod is labelled otherwise", map[string]bool{"x/app x/web tcp 80": false})
	p.pods.Modify(p.pod("x/app", nil))
	end := int32(81)
	ranged := port(&tcp, number(80))
	ranged.EndPort = &end
	other := p.containers["y/other"].ep
	p.policies.Add(policy("block", web, in([]networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "10.1.1.0/24", Except: []string{other.IPv4.String() + "/32"}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8:1::/64", Except: []string{other.IPv6.String() + "/128"}}},
	}, ranged)))
	p.expect("a block without one address, at a range of ports", map[string]bool{
		"x/app x/web tcp 80": true, "x/app x/web tcp 81": true, "y/other x/web tcp 80": false, "y/other x/web tcp 81": false,
	})
	p.policies.Add(policy("out", selector("app", "app"), out([]networkingv1.NetworkPolicyPeer{{PodSelector: web}}, port(nil, name("alt")))))
	p.expect("the pod may leave for a named port of its peer only", map[string]bool{
		"x/app x/web tcp 81": true, "x/app x/web tcp 80": false, "x/app y/other tcp 80": false, "x/app x/web udp 53": false,
	})
	p.policies.Delete(deny)
	p.expect("its answers pass", map[string]bool{"x/web x/app tcp 80": true, "y/other x/app udp 53": true, "x/app y/other tcp 80": false})
	for _, gone := range []string{"app", "team", "block", "out"} {
		p.policies.Delete(policy(gone, everybody, networkingv1.NetworkPolicySpec{}))
	}
	p.expect("no policy any more", map[string]bool{"x/app x/web tcp 80": true, "y/other x/web udp 53": true, "x/app y/other tcp 81": true})
}
