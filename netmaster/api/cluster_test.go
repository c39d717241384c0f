package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/masterapi"
)

// members makes what netmaster knows of one registered host, h1.
func members(t *testing.T, store *memory.Store) *cluster.Members {
	t.Helper()
	m := cluster.New("10.0.0.1")
	register(t, store, clusterapi.AgentService, "10.0.0.2", "h1")
	register(t, store, clusterapi.VTEPService, "10.9.0.2", "h1")
	go m.Follow(t.Context(), store)
	for {
		changed := m.Changed()
		if hosts := m.Hosts(); len(hosts) == 1 && hosts[0].VTEP != "" {
			return m
		}
		<-changed
	}
}

// change makes a request and returns the revisions of its answer.
func change(t *testing.T, method, url, body string) (revision, settings string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, resp.Status)
	}
	return resp.Header.Get(masterapi.RevisionHeader), resp.Header.Get(masterapi.SettingsHeader)
}

// TestCluster follows changes through what hosts say of them.
func TestCluster(t *testing.T) {
	store := memory.New()
	m := members(t, store)
	cfg := apitest.Config(apitest.Log(t))
	cfg.Members = m
	base := apitest.Start(t, store, cfg)
	n1 := network("n1", "10.1.1.0/24")
	revision, settings := change(t, n1.method, base+n1.path, n1.body)
	applied := func(missing string) exchange {
		return exchange{"GET", clusterapi.PathApplied + "?revision=" + revision + "&settings=" + settings + "&wait=1ms", "", 200, `{"hosts":1,"missing":[` + missing + `]}`}
	}
	play(t, base, []exchange{applied(`{"host":"h1","reasons":["it has not reported to this netmaster yet"]}`)})
	var at clusterapi.Cluster
	_, text := send(t, "GET", base+"/api/v1/cluster", "")
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(at.Revision, " ", at.Settings); got != revision+" "+settings {
		t.Errorf("the cluster is at %s, the change at %s %s", got, revision, settings)
	}
	if len(at.Hosts) != 1 || at.Hosts[0].State != clusterapi.Silent || at.Hosts[0].Lag != max(at.Revision, at.Settings) {
		t.Errorf("hosts: %+v", at.Hosts)
	}
	if _, err := m.Report(clusterapi.Report{Host: "h1", Instance: 1, Sequence: 1, Revision: at.Revision, Settings: at.Settings, VTEP: "10.9.0.2"}); err != nil {
		t.Fatal(err)
	}
	play(t, base, []exchange{applied("")})
	// What agents have nothing to do with is applied at once.
	if r, s := change(t, "POST", base+tenantPath+"red/", `{"tenantName":"red"}`); r != revision || s != settings {
		t.Errorf("a tenant is at %s %s, want %s %s", r, s, revision, settings)
	}
	_, settings2 := change(t, "POST", base+globalPath+"global/", `{"name":"global","arpMode":"flood","fwdMode":"routing","networkInfraType":"default",`+
		`"pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`)
	if settings2 == settings {
		t.Errorf("the settings are at %s as before", settings2)
	}
	settings = settings2
	play(t, base, []exchange{
		applied(`{"host":"h1","reasons":[]}`),
		{"GET", clusterapi.PathApplied + "?revision=-1", "", 500, `query revision="-1": expected a store revision`},
		{"GET", clusterapi.PathApplied + "?wait=soon", "", 500, `query wait="soon": expected a duration like 5s`},
	})
}

// TestRevisionsSurvive: a new leader asks no less of the hosts than the old one.
func TestRevisionsSurvive(t *testing.T) {
	store := memory.New()
	n1 := network("n1", "10.1.1.0/24")
	old := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	revision, settings := change(t, n1.method, old+n1.path, n1.body)
	next := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	if r, s := change(t, "POST", next+tenantPath+"red/", `{"tenantName":"red"}`); r != revision || s != settings {
		t.Errorf("the new leader says %s %s, the old one said %s %s", r, s, revision, settings)
	}
}

// TestDebugOfnet: the state that is distributed keeps the form tools read.
func TestDebugOfnet(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	cfg.Members = members(t, store)
	base := apitest.Start(t, store, cfg)
	host := objdb.Put(state.HostRoot+"h1", []byte(`{"id":"h1","vtepIP":"10.9.0.2","ctrlIP":"10.0.0.2"}`))
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{host}}); err != nil {
		t.Fatal(err)
	}
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"),
		{"POST", "/plugin/createEndpoint", `{"TenantName":"default","NetworkName":"n1","ConfigEP":{"Container":"a","Host":"h1"}}`, 200, `~10.1.1.1`},
	})
	_, text := send(t, "GET", base+"/debug/ofnet", "")
	var got any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	node := func(port float64) any { return map[string]any{"HostAddr": "10.9.0.2", "HostPort": port} }
	want := any(map[string]any{
		"MyAddr": "10.0.0.1", "MyPort": 9001.0, "AgentStats": nil, "PolicyDb": map[string]any{},
		"AgentDb": map[string]any{"10.9.0.2:9002": node(9002), "10.9.0.2:9003": node(9003)},
		"EndpointDb": map[string]any{"10.1.1.1:default": map[string]any{
			"EndpointID": "10.1.1.1:default", "EndpointType": 2.0, "EndpointGroup": 0.0, "IpAddr": "10.1.1.1", "IpMask": "255.255.255.255",
			"Ipv6Addr": "", "Ipv6Mask": "", "Vrf": "default", "MacAddrStr": "02:02:0a:01:01:01", "Vlan": 1.0, "Vni": 1.0, "EndpointGroupVlan": 1.0,
			"OriginatorIp": "10.9.0.2", "OriginatorMac": "", "Timestamp": "0001-01-01T00:00:00Z",
		}},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("/debug/ofnet (-want +got):\n%s", diff)
	}
}
