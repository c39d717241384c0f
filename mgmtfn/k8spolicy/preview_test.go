package k8spolicy

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// previewController knows pods web and db of namespace shop, on hosts h1 and h2.
func previewController(t *testing.T) *Controller {
	t.Helper()
	c := New(Config{Host: "h1"})
	c.synced = true
	c.set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for name, address := range map[string]string{"web": "10.1.1.1", "db": "10.1.1.2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}}}
		pod.Status.PodIPs = []corev1.PodIP{{IP: address}}
		c.set(pod)
	}
	return c
}

func previewed(id string, verdict flowapi.Verdict, port uint16, host string) *flowapi.Event {
	return &flowapi.Event{Record: &flowapi.Record{
		ID: id, Hosts: []string{"h1"}, Verdict: verdict, Proto: "tcp",
		Src: flowapi.End{Address: netip.MustParseAddr("10.1.1.1"), Endpoint: "e1", Name: "shop/web", Host: host},
		Dst: flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: port, Endpoint: "e2", Name: "shop/db", Host: "h2"},
	}}
}

const onlyPort = `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"namespace":"shop","name":"db"},
	"spec":{"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"ports":[{"port":PORT}]}]}}`

// What policies would have decided is told with the rule; connections of other hosts' senders
// are theirs to examine, and the policies in force do not change.
func TestPreview(t *testing.T) {
	c := previewController(t)
	recorded := func(_ context.Context, _ flowapi.Filter, take func(*flowapi.Event) error) error {
		for _, e := range []*flowapi.Event{
			previewed("1", flowapi.Allowed, 5432, "h1"), previewed("2", flowapi.Allowed, 22, "h1"), previewed("3", flowapi.Allowed, 22, "h2"),
			previewed("4", flowapi.Denied, 23, "h1"),
			{Gap: &flowapi.Gap{Host: "h1"}},
		} {
			if err := take(e); err != nil {
				return err
			}
		}
		return nil
	}
	ask := func(text string) (*flowapi.Preview, error) {
		return c.Preview(t.Context(), recorded, flowapi.PolicyPreviewRequest{NetworkPolicies: []json.RawMessage{json.RawMessage(text)}, Limit: 10})
	}
	p, err := ask(strings.Replace(onlyPort, "PORT", "5432", 1))
	if err != nil || p.Examined != 3 || p.WouldDeny != 1 || p.WouldAllow != 0 || len(p.Gaps) != 1 || p.Denied[0].Record.ID != "2" ||
		p.Denied[0].By.Policy != "shop/db" || p.Denied[0].By.By != flowapi.ByDefault {
		t.Fatalf("%+v, %v", p, err)
	}
	if len(c.cluster.policies) != 0 {
		t.Error("a preview has changed the policies")
	}
	var np networkingv1.NetworkPolicy
	if err := json.Unmarshal([]byte(strings.Replace(onlyPort, "PORT", "5432", 1)), &np); err != nil {
		t.Fatal(err)
	}
	c.set(&np)
	p, err = ask(strings.Replace(onlyPort, "PORT", "23", 1))
	if err != nil || p.WouldDeny != 1 || p.Denied[0].Record.ID != "1" || p.WouldAllow != 1 || p.Allowed[0].Record.ID != "4" || p.Allowed[0].By.Rule != "ingress[0]" {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"kind":"NetworkPolicy"}`, strings.Replace(onlyPort, "PORT", `"\u0000", "endPort": 5`, 1)} {
		if _, err := ask(bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestPodAt: a pod is found by its address as long as it has it, in its tenant, and not when
// two have it.
func TestPodAt(t *testing.T) {
	c := previewController(t)
	at := netip.MustParseAddr("10.1.1.1")
	expect := func(tenant, want string) {
		t.Helper()
		if got := c.PodAt(tenant, at); got != want {
			t.Errorf("tenant %s has %q at %s, want %q", tenant, got, at, want)
		}
	}
	expect("default", "shop/web")
	expect("blue", "")
	next := Pod{Key: Key{"shop", "next"}, IPs: []netip.Addr{at}}
	c.cluster.SetPod(next)
	expect("default", "")
	c.cluster.RemovePod(Key{"shop", "web"})
	expect("default", "shop/next")
	next.IPs = nil
	c.cluster.SetPod(next)
	expect("default", "")
	if len(c.cluster.byAddress) != 1 {
		t.Errorf("%v is left", c.cluster.byAddress)
	}
}
