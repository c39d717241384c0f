package whatif

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// world is a cluster of two tenants with a service, and what its agents say.
type world struct {
	endpoints []*state.Endpoint
	service   *state.ServiceLB
	rules     *Rules
	silent    bool // agents cannot find Services
}

func newWorld() *world {
	ep := func(tenant, name, ip string, group int) *state.Endpoint {
		return &state.Endpoint{ID: "net." + tenant + "-" + name, EPCommonName: name, HomingHost: "h-" + name, IPAddress: ip, NetID: "net." + tenant, EndpointGroupID: group}
	}
	deny := state.PolicyRule{RuleID: "blue:g:blue:guard:blue:guard:1:inRx", Priority: 1, DstEndpointGroup: 7, Action: "deny"}
	return &world{
		endpoints: []*state.Endpoint{ep("blue", "app", "10.1.1.1", 1), ep("blue", "db1", "10.1.1.2", 2), ep("blue", "db2", "10.1.1.3", 7), ep("red", "other", "10.1.1.2", 1)},
		service: &state.ServiceLB{ServiceName: "data", Tenant: "blue", IPAddress: "10.9.9.9", Ports: []string{"54:5432:TCP"}, Providers: map[string]state.Provider{
			"a": {EpIDKey: "net.blue-db2"}, "b": {EpIDKey: "net.blue-db1"}, "gone": {EpIDKey: "net.blue-db9"},
		}},
		rules: NewRules([]state.PolicyRule{deny}, nil),
	}
}

func (w *world) EndpointsAt(a netip.Addr, tenant string) (found []*state.Endpoint) {
	for _, ep := range w.endpoints {
		if ep.IPAddress == a.String() && (tenant == "" || strings.HasSuffix(ep.NetID, "."+tenant)) {
			found = append(found, ep)
		}
	}
	return found
}

func (w *world) EndpointNamed(search string) *state.Endpoint {
	for _, ep := range w.endpoints {
		if ep.ID == search || ep.EPCommonName == search {
			return ep
		}
	}
	return nil
}

func (w *world) NetworkOf(ep *state.Endpoint) (network, tenant string) {
	return state.SplitNetworkID(ep.NetID)
}

func (w *world) ServiceAt(name, tenant string) []netip.Addr {
	if name == w.service.ServiceName && tenant == w.service.Tenant {
		return []netip.Addr{netip.MustParseAddr(w.service.IPAddress)}
	}
	return nil
}

func (w *world) ServiceOf(a netip.Addr, tenant string) *state.ServiceLB {
	if a.String() == w.service.IPAddress && tenant == w.service.Tenant {
		return w.service
	}
	return nil
}

func (w *world) HostRecords(context.Context) (map[string]state.Host, error) { return nil, nil }
func (w *world) Rules() *Rules                                              { return w.rules }

// Ask: a NetworkPolicy isolates db1 from everybody.
func (w *world) Ask(_ context.Context, _ string, q flowapi.PolicyQuestion) ([]flowapi.Decision, error) {
	if q.Endpoint != "net.blue-db1" {
		return nil, nil
	}
	return []flowapi.Decision{{At: flowapi.AtDestination, By: flowapi.ByDefault, Policy: "shop/np", Verdict: flowapi.Denied}}, nil
}

// Find knows one Service, with many providers at port 1.
func (w *world) Find(_ context.Context, host string, q flowapi.ServiceQuestion) (a flowapi.ServiceAnswer, err error) {
	vip := netip.MustParseAddr("10.96.0.7")
	switch {
	case w.silent:
		return a, errors.New("its netplugin cannot find Services yet; upgrade it")
	case host != "h-app" || q.Tenant != "blue" || q.Proto != "tcp":
		return a, fmt.Errorf("host %s is asked %+v", host, q)
	case q.Name != "shop/data" && q.Address != vip:
		return a, nil
	}
	a = flowapi.ServiceAnswer{Name: "shop/data", Addresses: []netip.Addr{netip.MustParseAddr("fd00::7"), vip}}
	switch q.Port {
	case 54:
		a.Providers = []netip.AddrPort{netip.MustParseAddrPort("10.1.1.2:5432"), netip.MustParseAddrPort("[2001:db8::2]:5432"), netip.MustParseAddrPort("192.0.2.1:5432")}
	case 1:
		for i := range 100 {
			a.Providers = append(a.Providers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1))
		}
	}
	return a, nil
}

// TestExplainServices: each provider of a service has its verdict, in netmaster's and in
// Kubernetes' services; ends of two tenants get an error.
func TestExplainServices(t *testing.T) {
	kubernetes, silent := newWorld(), newWorld()
	silent.silent = true
	for _, tc := range []struct {
		what   string
		w      *world
		agents Agents
		q      flowapi.Question
		want   string // verdict, provider and verdict of each, and a part of the text or of the error
	}{
		{"a service with two providers", newWorld(), nil, flowapi.Question{From: "app", To: "data", Tenant: "blue", Proto: "tcp", Port: 54}, "denied db1 allowed, db2 denied: 1 of 2 providers of service data"},
		{"a port that it has not", newWorld(), nil, flowapi.Question{From: "app", To: "data", Tenant: "blue", Port: 55}, "rejected: rejected by service"},
		{"a Service by its name", kubernetes, kubernetes, flowapi.Question{From: "app", To: "shop/data", Port: 54}, "denied db1 denied, 192.0.2.1 allowed: 1 of 2 providers of service shop/data"},
		{"a Service by its address", kubernetes, kubernetes, flowapi.Question{From: "app", To: "10.96.0.7", Port: 54}, "denied db1 denied, 192.0.2.1 allowed: asked for as service shop/data"},
		{"without providers", kubernetes, kubernetes, flowapi.Question{From: "app", To: "shop/data", Port: 55}, "rejected: rejected by service"},
		{"no such Service", kubernetes, kubernetes, flowapi.Question{From: "app", To: "shop/none", Port: 54}, "to: no endpoint"},
		{"an address outside", kubernetes, kubernetes, flowapi.Question{From: "app", To: "192.0.2.9", Port: 54}, "allowed: to 192.0.2.9"},
		{"an agent of an earlier version", silent, silent, flowapi.Question{From: "app", To: "192.0.2.9", Port: 54}, "allowed: to 192.0.2.9"},
		{"which cannot find a name", silent, silent, flowapi.Question{From: "app", To: "shop/data", Port: 54}, "ask host h-app for Service shop/data: its netplugin cannot"},
		{"ends of two tenants", newWorld(), nil, flowapi.Question{From: "app", To: "other", Port: 54}, "app is of tenant blue and other of tenant red: tenants are isolated"},
	} {
		e, err := Explain(t.Context(), tc.w, tc.agents, func(string) flowapi.Applied { return flowapi.Applied{Done: true} }, tc.q)
		got := fmt.Sprint(err)
		if err == nil {
			var each []string
			for _, one := range e.Providers {
				each = append(each, endName(one.Dst)+" "+string(one.Verdict))
			}
			got = strings.TrimSpace(string(e.Verdict)+" "+strings.Join(each, ", ")) + ": " + e.Text
		}
		start, part, _ := strings.Cut(tc.want, ": ")
		if !strings.HasPrefix(got, start+": ") || !strings.Contains(got, part) {
			t.Errorf("%s: %s\nwant %s", tc.what, got, tc.want)
		}
	}
	e, err := Explain(t.Context(), kubernetes, kubernetes, func(string) flowapi.Applied { return flowapi.Applied{} }, flowapi.Question{From: "app", To: "shop/data", Port: 1})
	if err != nil || len(e.Providers) != flowapi.MostProviders || !strings.HasSuffix(e.Text, "68 more providers were not looked at") {
		t.Errorf("%d providers: %v", len(e.Providers), err)
	}
}
