package ovsd

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// Rules, flood groups and everything else stay when the agent restarts, in whatever order
// they are declared again; when the rules are deleted nothing of them remains.
func TestInsidePolicyAndFloods(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	for _, mode := range []string{"routing", "bridge"} {
		t.Run(mode, func(t *testing.T) { policyAndFloods(t, dir, mode) })
	}
}

// wanted lists the flows that a bridge should have.
func wanted(sw *ofnet.Switch) (flows []string) {
	for _, f := range sw.Flows() {
		flows = append(flows, f.String())
	}
	slices.Sort(flows)
	return flows
}

func policyAndFloods(t *testing.T, dir, mode string) {
	local, remote := contract.Endpoint(1), contract.Endpoint(2)
	local.Group, remote.Group = 1, 2
	remote.Local, remote.VTEP = false, netip.MustParseAddr("192.168.60.11")
	rules := []drivers.Rule{
		{Tenant: "default", Rule: ofnet.Rule{ID: "default:a", Priority: 1, DstGroup: 1, Deny: true}},
		{Tenant: "default", Rule: ofnet.Rule{ID: "default:b", Priority: 2, SrcGroup: 2, DstGroup: 1, Proto: 6, DstPort: 80}},
		{Tenant: "default", Rule: ofnet.Rule{ID: "default:c", Priority: 3, SrcGroup: 2, DstGroup: 1, Proto: 17}},
	}
	global := contract.Global
	global.FwdMode = mode
	declare := func(d *Driver) {
		d.Apply(remote)
		for _, r := range rules {
			d.Apply(r)
		}
		d.Apply(contract.Network)
		d.Apply(global)
		d.Apply(local)
		d.Synced(drivers.SourceStore)
	}
	first, stop := runDriver(t, testConfig(dir))
	declare(first)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := first.Attach(ctx, drivers.Attachment{EndpointID: local.ID, ContainerID: "c1", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VXLAN, 1); err != nil {
		t.Fatal(err)
	}
	if err := first.Realised(ctx, local.ID); err != nil {
		t.Fatal(err)
	}
	ready(t, first)
	eventually.True(t, "the numbers of VRFs are stored", func() bool { return !first.vrfsUnsaved() })
	stop()

	second, stop := runDriver(t, testConfig(dir))
	defer stop()
	slices.Reverse(rules)
	declare(second)
	ready(t, second)
	if err := second.Realised(ctx, local.ID); err != nil {
		t.Fatal(err)
	}
	sw := second.bridges[ofnet.VXLAN].sw
	st := sw.Status()
	if st.Sent != 0 {
		t.Errorf("%d changes sent by a driver that found everything in place", st.Sent)
	}
	if groups := map[string]int{"routing": 0, "bridge": 2}[mode]; st.Groups != groups {
		t.Errorf("%d groups, expected %d", st.Groups, groups)
	}
	tracked := func() (n int) {
		for _, f := range sw.Flows() {
			if strings.Contains(f.String(), "reg2=0x1") && strings.Contains(f.String(), "ct(table=") {
				n++
			}
		}
		return n
	}
	if tracked() != 4 {
		t.Errorf("%d flows track connections, expected those of containers and those of the host, in each family", tracked())
	}
	// To the other mode and back: nothing remains.
	before := wanted(sw)
	other := global
	other.FwdMode = map[string]string{"routing": "bridge", "bridge": "routing"}[mode]
	for _, g := range []drivers.Global{other, global} {
		second.Apply(g)
		ready(t, second)
	}
	if after := wanted(sw); !slices.Equal(before, after) || sw.Status().Groups != st.Groups || sw.Status().Actual != len(after) {
		t.Errorf("before changing the mode:\n%s\nafter changing it back, with %+v:\n%s", strings.Join(before, "\n"), sw.Status(), strings.Join(after, "\n"))
	}
	for _, r := range rules {
		second.Delete(drivers.KindRule, r.ID)
	}
	ready(t, second)
	if tracked() != 0 {
		t.Error("connections are tracked without rules")
	}
	if st := sw.Status(); st.Pending != 0 || len(second.compiler.Rules) != 0 {
		t.Errorf("status %+v, rules %v", st, second.compiler.Rules)
	}
	if err := second.Detach(ctx, local.ID); err != nil {
		t.Fatal(err)
	}
	second.Delete(drivers.KindEndpoint, local.ID)
	ready(t, second)
	if st := sw.Status(); st.Groups != 0 {
		t.Errorf("%d groups are left of a network without local endpoints", st.Groups)
	}
}
