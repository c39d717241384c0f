package intent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

// put writes to a store without netmaster.
func put(t *testing.T, store objdb.Store, pairs ...string) {
	t.Helper()
	var ops []objdb.Op
	for i := 0; i < len(pairs); i += 2 {
		ops = append(ops, objdb.Put(pairs[i], []byte(pairs[i+1])))
	}
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: ops}); err != nil {
		t.Fatal(err)
	}
}

// TestRepair checks how a new leader handles claims without owner, and addresses and tags
// in use without claim.
func TestRepair(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.mustPut(t, e.networks(), "default:n", `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24","gateway":"10.1.1.254"}`)
	e.mustPut(t, e.groups(), "default:g", `{"tenantName":"default","networkName":"n","groupName":"g","ipPool":"10.1.1.100-10.1.1.101"}`)
	for _, c := range []string{"c1", "c2"} {
		if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", c, "")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default"}); err != nil {
		t.Fatal(err)
	}
	stop()
	want := claims(t, store, "n.default")
	ipam, tag := state.IPAMRoot+"n.default/", state.TagRoot
	put(t, store,
		ipam+"10.1.1.50", `{"owner":"endpoint/n.default-gone"}`,
		ipam+"10.1.1.51", `{"owner":"endpoint/n.default-c1"}`, // has another address
		ipam+"10.1.1.52", `{"owner":"gateway"}`,
		ipam+"10.1.1.60-10.1.1.61", `{"owner":"group/gone:default"}`,
		state.IPAMRoot+"gone.default/10.9.1.1", `{"owner":"reserved/x"}`,
		tag+"vlan/77", `{"owner":"network/gone.default"}`,
		tag+"group-id/77", `{"owner":"group/gone:default"}`,
	)
	txn := objdb.Txn{Then: []objdb.Op{
		objdb.Delete(ipam + "10.1.1.2"), objdb.Delete(ipam + "10.1.1.254"), objdb.Delete(ipam + "10.1.1.100-10.1.1.101"),
		objdb.Delete(tag + "vxlan/1"), objdb.Delete(tag + "local-vlan/1"), objdb.Delete(tag + "group-id/1"),
	}}
	if _, err := store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	e, _, stop = lead(t, store)
	defer stop()
	if diff := cmp.Diff(want, claims(t, store, "n.default")); diff != "" {
		t.Errorf("claims (-before +after):\n%s", diff)
	}
	e.checkConsistent(t)
	kvs, _, err := store.List(t.Context(), state.TagRoot)
	if err != nil || len(kvs) != 3 {
		t.Errorf("%d tags, %v, want 3", len(kvs), err)
	}
}

// TestUnreadable checks that unreadable records are neither lost nor a problem for others.
func TestUnreadable(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.mustNetwork(t, "n", "10.1.1.0/24")
	stop()
	put(t, store,
		state.EndpointRoot+"n.default-bad", `{`,
		state.IPAMRoot+"n.default/10.1.1.1", `not JSON`,
		state.IPAMRoot+"n.default/10.1.1.2", `{"owner":"endpoint/n.default-bad"}`,
		state.IPAMRoot+"n.default/x", `{"owner":"y"}`,
		state.TagRoot+"nothing/1", `{"owner":"y"}`,
		state.TagRoot+"vxlan/2", `x`,
		state.ModelRoot+"network/default:m", `{"key":"default:other"}`,
		state.NetworkRoot+"bad.default", `{"id":"bad.default","subnetIP":"10.1.1.0","subnetLen":99}`,
	)
	e, _, stop = lead(t, store)
	defer stop()
	ch, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", ""))
	if err != nil || ch.Endpoint.IPAddress != "10.1.1.3" {
		t.Errorf("endpoint got %q, %v; want the first address nobody may have", ch.Endpoint.IPAddress, err)
	}
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "bad", "")); err == nil {
		t.Error("an unreadable endpoint was overwritten")
	}
	e.mustNetwork(t, "n2", "10.2.1.0/24")
	if rec := e.model.networks.records.base["n2.default"].v; rec.ExtPktTag != 3 {
		t.Errorf("VNI %d, want the first one nobody may have, 3", rec.ExtPktTag)
	}
	if kv, err := store.Get(t.Context(), state.EndpointRoot+"n.default-bad"); err != nil || string(kv.Value) != "{" {
		t.Errorf("the unreadable record is %q, %v", kv.Value, err)
	}
}

// TestUnreadableDerived checks that a leader starts, and keeps what may be right, if rules,
// groups, rule records, services or provider lists cannot be read.
func TestUnreadableDerived(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.mustNetwork(t, "n", "10.1.1.0/24")
	e.mustPut(t, e.policies(), "default:p", `{"tenantName":"default","policyName":"p"}`)
	for _, g := range []string{"g", "h", "i"} {
		e.mustPut(t, e.groups(), "default:"+g, `{"tenantName":"default","networkName":"n","groupName":"`+g+`","policies":["p"]}`)
	}
	for _, r := range []string{"1", "2"} {
		e.mustPut(t, e.rules(), "default:p:"+r, `{"tenantName":"default","policyName":"p","ruleId":"`+r+`","direction":"in","action":"deny"}`)
	}
	for _, s := range []string{"s", "u"} {
		e.mustPut(t, e.services(), "default:"+s,
			`{"tenantName":"default","networkName":"n","serviceName":"`+s+`","ports":["80:80:TCP"],"selectors":["a=b"]}`)
	}
	stop()
	record := func(group, rule string) string {
		return state.PolicyRuleRoot + "default:" + group + ":default:p:default:p:" + rule + ":inRx"
	}
	put(t, store,
		state.ModelRoot+"rule/default:p:1", `{`,
		state.ModelRoot+"endpointGroup/default:h", `{`,
		record("g", "2"), `{`,
		state.ServiceLBRoot+"s:default", `{`,
		state.ProviderRoot+"u:default", `{`,
	)
	before, _, err := store.List(t.Context(), state.StateRoot)
	if err != nil {
		t.Fatal(err)
	}
	e, _, stop = lead(t, store)
	defer stop()
	after, _, err := store.List(t.Context(), state.StateRoot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	if _, err := e.rules().Put(t.Context(), "default:p:3",
		[]byte(`{"tenantName":"default","policyName":"p","ruleId":"3","direction":"in","action":"deny"}`)); err != nil {
		t.Error(err)
	}
	if err := e.rules().Delete(t.Context(), "default:p:2"); err == nil {
		// Its unreadable record is not known to be its own, and stays.
		if _, err := store.Get(t.Context(), record("g", "2")); err != nil {
			t.Error(err)
		}
	}
}

// TestIPv6GoesOn checks that a new leader does not immediately hand out the last addresses
// again.
func TestIPv6GoesOn(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.mustPut(t, e.networks(), "default:n", `{"tenantName":"default","networkName":"n","encap":"vlan","subnet":"10.1.1.0/24","ipv6Subnet":"2001:db8::/64"}`)
	for i := 1; i <= 3; i++ {
		if i == 3 {
			stop()
			e, _, stop = lead(t, store)
			defer stop()
		}
		ch, err := e.CreateEndpoint(t.Context(), endpoint("n", "", fmt.Sprint("c", i), ""))
		if want := fmt.Sprint("2001:db8::", i); err != nil || ch.Endpoint.IPv6Address != want {
			t.Errorf("got %s, %v, want %s", ch.Endpoint.IPv6Address, err, want)
		}
	}
}

// TestFlags checks when start-up flags change the settings of a cluster that exists:
// only when they are not the ones it was started with, and nothing depends on them.
func TestFlags(t *testing.T) {
	store := memory.New()
	start := func(fwd string) (*Engine, string) {
		t.Helper()
		l, err := intenttest.Lead(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(t.Context(), Config{Log: quiet(), FwdMode: fwd, Infra: "default"}, store, l)
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.globals().Get(contivmodel.GlobalName)
		if err != nil {
			t.Fatal(err)
		}
		return e, g.(*contivmodel.Global).FwdMode
	}
	set := func(e *Engine, fwd string) {
		t.Helper()
		e.mustPut(t, e.globals(), "global", `{"name":"global","fwdMode":"`+fwd+`","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`)
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: forwarding mode %s, want %s", what, got, want)
		}
	}
	e, got := start("routing")
	check("new cluster", got, "routing")
	set(e, "bridge")
	_, got = start("routing")
	check("what a user has set survives a restart", got, "bridge")
	_, got = start("bridge")
	check("new flags, equal to the settings", got, "bridge")
	e, got = start("routing")
	check("new flags", got, "routing")
	e.mustNetwork(t, "n", "10.1.1.0/24")
	_, got = start("bridge")
	check("new flags with networks in place", got, "routing")
}

// TestMoreNetworksThanVLANs: the number of local VLANs does not limit the number of VXLAN
// networks, and none is used twice or lost.
func TestMoreNetworksThanVLANs(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.model.pools[tags.Local].SetRange(contivmodel.TagRange{Low: 1, High: 2})
	create := func(n int) {
		e.mustPut(t, e.networks(), fmt.Sprintf("default:n%d", n), fmt.Sprintf(
			`{"tenantName":"default","networkName":"n%d","encap":"vxlan","subnet":"10.1.%d.0/24"}`, n, n))
	}
	localTags := func(e *Engine) string {
		var all []string
		for n := 1; n <= 4; n++ {
			if r, ok := e.model.networks.records.base[fmt.Sprintf("n%d.default", n)]; ok {
				all = append(all, fmt.Sprintf("n%d:%d/%d", n, r.v.PktTag, r.v.ExtPktTag))
			}
		}
		return strings.Join(all, " ")
	}
	for n := 1; n <= 3; n++ {
		create(n)
	}
	if got, want := localTags(e), "n1:1/1 n2:2/2 n3:0/3"; got != want {
		t.Errorf("tags %s, want %s", got, want)
	}
	for _, n := range []string{"default:n3", "default:n1"} {
		if err := e.networks().Delete(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	create(4)
	stop()
	e, _, stop = lead(t, store)
	defer stop()
	if got, want := localTags(e), "n2:2/2 n4:1/1"; got != want {
		t.Errorf("tags %s, want %s", got, want)
	}
}
