package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/state"
)

func TestMatches(t *testing.T) {
	type set = map[string]string
	for name, tc := range map[string]struct {
		selectors, labels set
		want              bool
	}{
		"equal":            {set{"app": "web"}, set{"app": "web"}, true},
		"more labels":      {set{"app": "web"}, set{"app": "web", "tier": "1"}, true},
		"another value":    {set{"app": "web"}, set{"app": "db"}, false},
		"one of two":       {set{"app": "web", "tier": "1"}, set{"app": "web"}, false},
		"empty value":      {set{"app": ""}, set{"app": ""}, true},
		"empty and absent": {set{"app": ""}, set{"tier": "1"}, false},
		"no labels":        {set{"app": "web"}, nil, false},
	} {
		if got := Matches(tc.selectors, tc.labels); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	net := &state.Network{Tenant: "t", NetworkName: "n"}
	s := &state.ServiceLB{ID: "s:t", Providers: map[string]state.Provider{}}
	for _, addr := range []string{"10.1.1.2", "10.1.1.1"} {
		ep := &state.Endpoint{ID: "n.t-" + addr, IPAddress: addr}
		s.Providers[ProviderKey(ep, "t")] = Provider("s:t", ep, net)
	}
	want := &state.ProviderList{ID: "s:t", ServiceName: "s:t", Providers: []string{"10.1.1.1", "10.1.1.2"}}
	if diff := cmp.Diff(want, List(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := List(&state.ServiceLB{ID: "s:t"}).Providers; got == nil || len(got) != 0 {
		t.Errorf("the list of no providers is %v", got)
	}
}
