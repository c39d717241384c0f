package contract

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/errs"
)

func realisedInAnyOrder(t *testing.T, env Env) {
	d := start(t, env)
	for i, declareFirst := range []bool{true, false} {
		ep := Endpoint(i + 1)
		if declareFirst {
			d.Apply(ep)
		}
		if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
			t.Errorf("realised too early: %v", err)
		}
		attach(t, d, ep.ID, env.Netns(t))
		if !declareFirst {
			if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
				t.Errorf("realised before it was declared: %v", err)
			}
			d.Apply(ep)
		}
		if err := d.Realised(long(t), ep.ID); err != nil {
			t.Error(err)
		}
		detach(t, d, ep.ID)
	}
}

func portStays(t *testing.T, env Env) {
	d := start(t, env)
	ep := Endpoint(1)
	d.Apply(ep)
	attach(t, d, ep.ID, env.Netns(t))
	d.Delete(drivers.KindEndpoint, ep.ID)
	if len(d.Attachments()) != 1 {
		t.Errorf("attachments: %+v", d.Attachments())
	}
	if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
		t.Errorf("realised although it is no longer declared: %v", err)
	}
	detach(t, d, ep.ID)
}

func policyInAnyOrder(t *testing.T, env Env) {
	d := start(t, env)
	ep := Endpoint(1)
	set := drivers.PolicyRuleSet{ID: "in", Allows: []ofnet.Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}}}}
	for _, steps := range [][]func(){
		{func() { d.Apply(set) }, func() { d.Apply(drivers.EndpointPolicy{EndpointID: ep.ID, In: set.ID, Out: "undeclared"}) }, func() { d.Apply(ep) }},
		{func() { d.Apply(ep) }, func() { d.Apply(drivers.EndpointPolicy{EndpointID: ep.ID, In: set.ID}) }, func() { d.Apply(set) }},
	} {
		for _, step := range steps {
			step()
		}
		attach(t, d, ep.ID, env.Netns(t))
		if err := d.Realised(long(t), ep.ID); err != nil {
			t.Error(err)
		}
		detach(t, d, ep.ID)
		d.Delete(drivers.KindPolicyRuleSet, set.ID)
		d.Delete(drivers.KindEndpointPolicy, ep.ID)
	}
	if err := d.Flushed(long(t)); err != nil {
		t.Error(err)
	}
}

func networkComesBack(t *testing.T, env Env) {
	d := start(t, env)
	ep := Endpoint(1)
	d.Apply(ep)
	netns := env.Netns(t)
	attach(t, d, ep.ID, netns)
	if err := d.Realised(long(t), ep.ID); err != nil {
		t.Fatal(err)
	}
	d.Delete(drivers.KindNetwork, Network.ID)
	detach(t, d, ep.ID)
	detach(t, d, ep.ID)
	if left := d.Attachments(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if err := d.Flushed(long(t)); err != nil {
		t.Errorf("after everything went: %v", err)
	}
	d.Apply(ep)
	d.Apply(Network)
	attach(t, d, ep.ID, netns)
	if err := d.Realised(long(t), ep.ID); err != nil {
		t.Error(err)
	}
	detach(t, d, ep.ID)
}
