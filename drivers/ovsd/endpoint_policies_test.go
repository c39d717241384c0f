package ovsd

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// endpointPolicyTraffic has a live TCP connection follow the policies at either end.
func endpointPolicyTraffic(t *testing.T, d *Driver, client, server container) {
	const brief, long = 200 * time.Millisecond, patience
	allow := func(id string, out bool, allows ...ofnet.Allow) {
		d.Apply(drivers.PolicyRuleSet{ID: id, Out: out, Allows: allows})
	}
	hold := func(c container, in, out string) {
		t.Helper()
		d.Apply(drivers.EndpointPolicy{EndpointID: c.ep.ID, In: in, Out: out})
		ready(t, d)
	}
	lives := func(when string, conn net.Conn) {
		t.Helper()
		if !exchanged(t, conn, long) {
			t.Errorf("%s: the connection does not live", when)
		}
	}
	ends := func(conn net.Conn) {
		t.Helper()
		// The datapath has its own copy of flows, and updates it a moment later.
		eventually.True(t, "the connection ends", func() bool { return !exchanged(t, conn, brief) })
	}
	allow("none-in", false)
	allow("none-out", true)
	allow("web-in", false, ofnet.Allow{Ports: []ofnet.PortRange{{Proto: 6, Low: 79, High: 80}}})
	allow("other-in", false, ofnet.Allow{Ports: []ofnet.PortRange{{Proto: 6, Low: 81, High: 90}}})
	// As containers are: known to have a policy before its rule sets are.
	hold(client, "", "")
	hold(server, "", "")
	conn := connect(t, client, server)
	lives("nobody is held to anything", conn)
	hold(client, "none-in", "")
	lives("nobody may ask the client", conn)
	hold(server, "web-in", "none-out")
	lives("the server may be asked for this", conn)
	hold(server, "other-in", "none-out")
	ends(conn)
	hold(server, "web-in", "")
	lives("the server may be asked for this again", conn)
	hold(client, "", "none-out")
	ends(conn)
	hold(client, "", "")
	lives("the client may ask", conn)
	allow("web-in", false)
	ready(t, d)
	ends(conn)
	for _, c := range []container{client, server} {
		d.Delete(drivers.KindEndpointPolicy, c.ep.ID)
	}
	for _, id := range []string{"none-in", "none-out", "web-in", "other-in"} {
		d.Delete(drivers.KindPolicyRuleSet, id)
	}
	ready(t, d)
	lives("all guards are gone", conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.compiler; len(c.EndpointPolicies)+len(c.RuleSets) != 0 {
		t.Errorf("left: %v, %v", c.EndpointPolicies, c.RuleSets)
	}
}

// Policies stay in force until an agent that has just started knows them again, and no flow
// of them is sent twice.
func TestInsideEndpointPoliciesOutliveTheAgent(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	ep := contract.Endpoint(1)
	netns := netxtest.Namespace(t)
	begin := func() (*Driver, func()) {
		cfg := testConfig(dir)
		cfg.Sources = []drivers.Source{drivers.SourcePolicies}
		d, stop := runDriver(t, cfg)
		d.Apply(contract.Global)
		d.Apply(contract.Network)
		d.Apply(ep)
		d.Synced(drivers.SourceStore)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := d.Attach(ctx, drivers.Attachment{EndpointID: ep.ID, ContainerID: "c1", IfName: "eth0", Netns: netns}, ofnet.VXLAN, 1); err != nil {
			t.Fatal(err)
		}
		return d, stop
	}
	hold := func(d *Driver) {
		t.Helper()
		d.Apply(drivers.PolicyRuleSet{ID: "in", Allows: []ofnet.Allow{{Ports: []ofnet.PortRange{{Proto: 6, Low: 80, High: 80}}}}})
		d.Apply(drivers.EndpointPolicy{EndpointID: ep.ID, In: "in", Out: "out"})
		d.Synced(drivers.SourcePolicies)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := d.Realised(ctx, ep.ID); err != nil {
			t.Fatal(err)
		}
		ready(t, d)
	}
	first, stop := begin()
	hold(first)
	eventually.True(t, "the numbers of VRFs are stored", func() bool { return !first.vrfsUnsaved() })
	before := first.bridges[ofnet.VXLAN].sw.Status()
	stop()

	second, stop := begin()
	defer stop()
	ready(t, second)
	sw := second.bridges[ofnet.VXLAN].sw
	if now := sw.Status(); now.Actual != before.Actual || now.Desired >= before.Desired {
		t.Errorf("%d flows, %d of them wanted, after %d", now.Actual, now.Desired, before.Actual)
	}
	hold(second)
	if now := sw.Status(); now.Sent != 0 || now.Digest != before.Digest {
		t.Errorf("sent %d, digest %x after %x", now.Sent, now.Digest, before.Digest)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := second.Detach(ctx, ep.ID); err != nil {
		t.Error(err)
	}
}
