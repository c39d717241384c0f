package contract

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

var allowedIn = drivers.PolicyRuleSet{ID: "in", Allows: []ofnet.Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}}}}

// sourcesSync has a predecessor declare what two sources know, of which the next driver is
// told nothing.
func sourcesSync(t *testing.T, env Env) {
	sources := []drivers.Source{drivers.SourceServices, drivers.SourcePolicies}
	sync := func(d Driver) {
		t.Helper()
		for _, s := range sources {
			d.Synced(s)
		}
		if err := d.Flushed(long(t)); err != nil {
			t.Fatal(err)
		}
	}
	ep, netns := Endpoint(1), env.Netns(t)
	declare := func(d Driver) {
		t.Helper()
		d.Apply(ep)
		attach(t, d, ep.ID, netns)
		if err := d.Realised(long(t), ep.ID); err != nil {
			t.Fatal(err)
		}
	}
	first, stop := startAndStop(t, env, sources...)
	declare(first)
	sync(first)
	want := env.Flows(t, ofnet.VXLAN)
	first.Apply(allowedIn)
	first.Apply(drivers.EndpointPolicy{EndpointID: ep.ID, In: allowedIn.ID})
	first.Apply(drivers.Service{
		ID: "shop/web", VIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
		Ports: []drivers.ServicePort{{Proto: 6, Port: 80, Providers: []drivers.ServiceProvider{{Addr: netip.MustParseAddrPort("10.1.1.1:80"), Local: true}}}},
	})
	sync(first)
	if env.Flows(t, ofnet.VXLAN) == want {
		t.Error("a policy and a service add no flows")
	}
	stop()
	second := start(t, env, sources...)
	declare(second)
	sync(second)
	if got := env.Flows(t, ofnet.VXLAN); got != want {
		t.Errorf("flows of what nobody declares are left:\n%s\nwant:\n%s", got, want)
	}
	detach(t, second, ep.ID)
}
