package ovsd

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Rules are shown under the names that tools read.
func TestInspectRules(t *testing.T) {
	d, err := New(testConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	d.Apply(drivers.Rule{Tenant: "default", Rule: ofnet.Rule{
		ID: "r1", Priority: 7, SrcGroup: 1, DstGroup: 2, Src: netip.MustParsePrefix("10.1.0.0/16"), Dst: netip.MustParsePrefix("10.2.0.1/32"),
		Proto: 6, DstPort: 80, Flags: "syn,!ack", Deny: true,
	}})
	text, err := json.Marshal(d.Inspect())
	if err != nil {
		t.Fatal(err)
	}
	const want = `"PolicyAgent":{"Rules":{"r1":{"Rule":{"RuleId":"r1","Priority":7,"SrcEndpointGroup":1,"DstEndpointGroup":2,` +
		`"SrcIpAddr":"10.1.0.0/16","DstIpAddr":"10.2.0.1","IpProtocol":6,"SrcPort":0,"DstPort":80,"TcpFlags":"syn,!ack","Action":"deny"}}}}`
	if got := strings.Count(string(text), want); got != 2 {
		t.Errorf("the rule is shown for %d bridges, want 2: %s", got, text)
	}
}
