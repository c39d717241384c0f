package nameserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/contiv/netplugin/objdb"
)

// The names of the members, and how addresses are written, are those that tools know.
func TestInspect(t *testing.T) {
	s := start(t, nil)
	s.names.Apply(objdb.Batch{Snapshot: true, Events: []objdb.Event{
		endpoint(t, "net.default-3f0c", "/web1", "front", "10.1.1.2", ""),
		lb(t, "web", "default", "10.254.0.10", ""),
	}})
	if got := ask(t, s, false, question("web1.", dns.TypeA)); !got.passed {
		t.Fatal("another tenant's name is answered")
	}
	got, err := json.Marshal(s.Inspect())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"serviceQueue":0,"endpointQueue":0,"dnsRecords":{"default":{` +
		`"services":{"web":["ipv4:10.254.0.10 ipv6:\u003cnil\u003e"]},"commonNames":{"web1":["ipv4:10.1.1.2 ipv6:\u003cnil\u003e"]},` +
		`"endpointGroups":{"front":["ipv4:10.1.1.2 ipv6:\u003cnil\u003e"]},"endpoints":{"3f0c":["ipv4:10.1.1.2 ipv6:\u003cnil\u003e"]}}},` +
		`"stats":{"blue":{"noNameRecord":1}}}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
