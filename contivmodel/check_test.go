package contivmodel

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/utils/errs"
)

func TestIsName(t *testing.T) {
	for _, tc := range []struct {
		s    string
		want bool
	}{
		{"a", true},
		{"A9", true},
		{"a.b", true},
		{"a-b", true},
		{"a--b", true},
		{"9", true},
		{"a.b-c.d", true},
		{"", false},
		{"-a", false},
		{"a-", false},
		{"a.", false},
		{".a", false},
		{"a..b", false},
		{"a_b", false},
		{"a.-b", false},
		{"a-.b", false},
		{"a:b", false},
		{"a|b", false},
		{`a\b`, false},
		{"a#", false},
		{"a@b", false},
		{"a!", false},
		{"~", false},
		{"*", false},
		{"^", false},
		{"a/b", false},
		{"ä", false},
		{"a b", false},
		{"a\n", false},
		{"a\x00", false},
	} {
		if got := IsName(tc.s); got != tc.want {
			t.Errorf("IsName(%q) = %v, want %v", tc.s, got, tc.want)
		}
	}
}

func TestParseCIDR6(t *testing.T) {
	for _, tc := range []struct{ s, want string }{
		{"2001:db8::/100", "2001:db8::/100"},
		{"2001:db8::5/64", "2001:db8::/64"},
		{"1:2:3:4:5:6:7::/127", "1:2:3:4:5:6:7:0/127"},
		{"::/1", "::/1"},
		{"2001:db8::/128", ""},
		{"2001:db8::/0", ""},
		{"2001:db8::/064", ""},
		{"2001:db8::", ""},
		{"1:2:3:4:5:6:7:8::/64", ""},
		{"::ffff:1.2.3.4/96", ""},
		{"fe80::1%eth0/64", ""},
		{"10.1.1.0/24", ""},
		{"", ""},
		{"2001:db8::/+64", ""},
	} {
		got, ok := ParseCIDR6(tc.s)
		if ok != (tc.want != "") || ok && got.String() != tc.want {
			t.Errorf("ParseCIDR6(%q) = %v, %v, want %q", tc.s, got, ok, tc.want)
		}
	}
}

func TestParseSubnet(t *testing.T) {
	for _, tc := range []struct{ s, prefix, rng string }{
		{"10.1.1.1/24", "10.1.1.0/24", "10.1.1.0-10.1.1.255"},
		{"20.1.1.10-20.1.1.45/24", "20.1.1.0/24", "20.1.1.10-20.1.1.45"},
		{"10.0.0.0/8", "10.0.0.0/8", "10.0.0.0-10.255.255.255"},
		{"10.1.1.0/31", "10.1.1.0/31", "10.1.1.0-10.1.1.1"},
		{"10.1.1.10-20/24", "", ""},
		{"10.1.1.10-10.1.1.1/24", "", ""},
		{"10.1.1.10-10.1.2.30/24", "", ""},
		{"10.1.1/24", "", ""},
		{"10.1.1.256/24", "", ""},
		{"10.1.1.0/32", "", ""},
		{"10.1.1.0/0", "", ""},
		{"10.1.1.0/7", "", ""},
		{"10.1.1.01/24", "", ""},
		{"10.1.1.0/024", "", ""},
		{"10.1.1.0", "", ""},
		{"", "", ""},
		{"::/24", "", ""},
		{"10.1.1.1-10.1.1.2-10.1.1.3/24", "", ""},
	} {
		s, err := ParseSubnet(tc.s)
		if (err == nil) != (tc.prefix != "") || err != nil && !errs.Is(err, errs.Invalid) {
			t.Errorf("ParseSubnet(%q): %v", tc.s, err)
			continue
		}
		if err == nil {
			if diff := cmp.Diff([]string{tc.prefix, tc.rng}, []string{s.Prefix.String(), s.Range.String()}); diff != "" {
				t.Errorf("ParseSubnet(%q) (-want +got):\n%s", tc.s, diff)
			}
		}
	}
}

func TestTagRanges(t *testing.T) {
	for _, tc := range []struct {
		s            string
		vlans, vnis  bool
		vlanF, vxlnF bool // the form alone
	}{
		{"1-4094", true, true, true, true},
		{"1-4095", true, true, true, true},
		{"5-5", true, true, true, true},
		{"0-4094", false, false, true, true},
		{"1-4096", false, true, true, true},
		{"9-8", false, false, true, true},
		{"1-16001", false, true, false, true},
		{"1-16002", false, false, false, true},
		{"50000-65535", false, true, false, true},
		{"1-100000", false, false, false, true},
		{"1-123456789", false, false, false, false},
		{"1", false, false, false, false},
		{"1?2", false, false, false, false},
		{"abcd", false, false, false, false},
		{"-1", false, false, false, false},
		{"1-2-3", false, false, false, false},
		{"+1-2", false, false, false, false},
		{"", false, false, false, false},
	} {
		_, verr := ParseVLANs(tc.s)
		_, xerr := ParseVXLANs(tc.s)
		_, vform := tagRangeSyntax(tc.s, maxVLANDigits)
		_, xform := tagRangeSyntax(tc.s, maxVNIDigits)
		want := []bool{tc.vlans, tc.vnis, tc.vlanF, tc.vxlnF}
		if diff := cmp.Diff(want, []bool{verr == nil, xerr == nil, vform, xform}); diff != "" {
			t.Errorf("%q: vlans, vxlans, their forms (-want +got):\n%s", tc.s, diff)
		}
	}
}

// TestOrder checks that the first wrong field, in the order of the table, is the one
// that is reported, its length before its form.
func TestOrder(t *testing.T) {
	long := strings.Repeat("x", 129)
	decode := func(body string) error {
		_, err := NetworkKind().Decode("t:n", []byte(body))
		return err
	}
	valid := `"tenantName":"t","networkName":"n","subnet":"10.1.1.0/24","encap":"vlan"`
	for _, tc := range []struct{ body, want string }{
		{`{"tenantName":"t","networkName":"m","cfgdTag":"` + long + `"}`, "Invalid Key"},
		{`{` + valid + `,"cfgdTag":"` + long + `","encap":"x"}`, "cfgdTag string too long"},
		{`{` + valid + `,"cfgdTag":"a_b","gateway":"x"}`, "cfgdTag string invalid format"},
		{`{"tenantName":"t","networkName":"n","gateway":"x"}`, "encap string invalid format"},
		{`{` + valid + `,"gateway":"2001:db8::1","ipv6Gateway":"x"}`, "gateway string invalid format"},
		{`{` + valid + `,"ipv6Gateway":"10.1.1.1","ipv6Subnet":"x"}`, "ipv6Gateway string invalid format"},
		{`{` + valid + `,"ipv6Subnet":"x","nwType":"x"}`, "ipv6Subnet string invalid format"},
		{`{` + valid + `,"nwType":"x","pktTag":-1}`, "nwType string invalid format"},
		{`{` + valid + `,"pktTag":16777217}`, "pktTag Value Out of bound"},
		{`{` + valid + `,"pktTag":1.5}`, "pktTag: expected an integer, got number 1.5"},
		{`{` + valid + `,"pktTag":99999999999999999999}`, "pktTag: expected an integer, got number 99999999999999999999"},
		{`{` + valid + `}`, ""},
	} {
		got := ""
		if err := decode(tc.body); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%.120s: %q, want %q", tc.body, got, tc.want)
		}
	}
}

// TestMembers checks the order of members, what is left out, and that links of a
// request are not taken over.
func TestMembers(t *testing.T) {
	text := func(v any, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	links := `"links":{"Tenant":{"type":"tenant","key":"x"}},"link-sets":{"Networks":{"x":{"type":"network","key":"x"}},"EndpointGroups":{"x":{}}}`
	tenant, err := TenantKind().Decode("t", []byte(`{"key":"ignored","tenantName":"t","defaultNetwork":"n",`+links+`}`))
	if diff := cmp.Diff(`{"key":"t","defaultNetwork":"n","tenantName":"t","link-sets":{}}`, text(tenant, err)); diff != "" {
		t.Errorf("tenant (-want +got):\n%s", diff)
	}
	network, err := NetworkKind().Decode("t:n", []byte(`{"tenantName":"t","networkName":"n","subnet":"10.1.1.0/24","encap":"vlan","pktTag":7,`+links+`}`))
	want := `{"key":"t:n","encap":"vlan","networkName":"n","nwType":"data","pktTag":7,"subnet":"10.1.1.0/24","tenantName":"t","link-sets":{},"links":{"Tenant":{}}}`
	if diff := cmp.Diff(want, text(network, err)); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
	group, err := EndpointGroupKind().Decode("t:g", []byte(`{"tenantName":"t","groupName":"g","networkName":"n","policies":["b","a"],`+links+`}`))
	want = `{"key":"t:g","groupName":"g","networkName":"n","policies":["b","a"],"tenantName":"t","link-sets":{},` +
		`"links":{"AppProfile":{},"NetProfile":{},"Network":{},"Tenant":{}}}`
	if diff := cmp.Diff(want, text(group, err)); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
}

// FuzzDecode checks that no body brings the decoders down, that errors are one line of
// kind Invalid, and that what passes decodes to the same again after it was written.
func FuzzDecode(f *testing.F) {
	f.Add("t:n", `{"tenantName":"t","networkName":"n","subnet":"10.1.1.0/24","encap":"vlan","pktTag":7,"ipv6Subnet":"2001:db8::/64"}`)
	f.Add("t:g", `{"tenantName":"t","groupName":"g","networkName":"n","policies":["a"],"ipPool":"10.1.1.1-10.1.1.2"}`)
	f.Add("t", `{"tenantName":"t","defaultNetwork":"n"}`)
	f.Add("global", `{"name":"global","vlans":"1-2","vxlans":"1-2","pvtSubnet":"172.19.0.0/16"}`)
	f.Add("t:p:1", `{"tenantName":"t","policyName":"p","ruleId":"1","direction":"in","action":"allow","protocol":"17","fromIpAddress":"10.1.1.1/32"}`)
	f.Add("t:s", `{"tenantName":"t","serviceName":"s","networkName":"n","ports":["80:80:tcp"],"selectors":["a=b"]}`)
	f.Add("t:p", `{"tenantName":"t","profileName":"p","bandwidth":"10 Gbps","DSCP":1,"burst":2}`)
	f.Add("h", `{"hostname":"h","routerip":"10.1.1.1-9/24","neighbor":"10.1.1.2"}`)
	f.Add("aciGw", `{"name":"aciGw","enforcePolicies":"yes","includeCommonTenant":"no","physicalDomain":"d","nodeBindings":"topology/pod-1/node-1"}`)
	f.Add("x", `[[[[`)
	f.Fuzz(func(t *testing.T, key, body string) {
		twice(t, TenantKind(), key, body)
		twice(t, NetworkKind(), key, body)
		twice(t, EndpointGroupKind(), key, body)
		twice(t, GlobalKind(), key, body)
		twice(t, NetprofileKind(), key, body)
		twice(t, PolicyKind(), key, body)
		twice(t, RuleKind(), key, body)
		twice(t, AppProfileKind(), key, body)
		twice(t, BgpKind(), key, body)
		twice(t, ServiceLBKind(), key, body)
		twice(t, ExtContractsGroupKind(), key, body)
		twice(t, AciGwKind(), key, body)
		twice(t, VolumeKind(), key, body)
		twice(t, VolumeProfileKind(), key, body)
	})
}

func twice[T, O any](t *testing.T, kind Kind[T, O], key, body string) {
	t.Helper()
	obj, err := kind.Decode(key, []byte(body))
	if err != nil {
		if !errs.Is(err, errs.Invalid) || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%s: kind %v: %q", kind.Type, errs.KindOf(err), err)
		}
		return
	}
	if kind.Key(obj) != key || kind.Ident(obj) != key {
		t.Errorf("%s: key %q, ident %q under %q", kind.Type, kind.Key(obj), kind.Ident(obj), key)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	again, err := kind.Decode(key, text)
	if err != nil {
		t.Fatalf("%s: %s is refused: %v", kind.Type, text, err)
	}
	second, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	if string(second) != string(text) {
		t.Errorf("%s: %s became %s", kind.Type, text, second)
	}
}

func TestBandwidth(t *testing.T) {
	for s, want := range map[string]bool{
		"10 Gbps": true, "10 Gb": true, "6gb": true, "4g": true, "20mbps": true, "1K": true, "1kbps": true, "5 M": true,
		"Gbps": false, "0 Gbps": false, "10": false, "10 ms": false, " 10 Gbps": false, "10 kB": false, "010g": false, "10  g": false,
		"10 {": false, "10 1": false, "10 }": false, "10bps": false, "10 gbs": false, "": false, "10 ": false, "-1g": false,
	} {
		if got := IsBandwidth(s); got != want {
			t.Errorf("IsBandwidth(%q) = %v, want %v", s, got, want)
		}
	}
}

// FuzzSubnet checks that what passes the form and the parser describes real addresses.
func FuzzSubnet(f *testing.F) {
	for _, s := range []string{"10.1.1.0/24", "10.1.1.1-10.1.1.9/24", "255.255.255.255/8", "0.0.0.0-255.255.255.255/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSubnet(text)
		if err != nil {
			return
		}
		if !IsSubnet(text) || s.Prefix != s.Prefix.Masked() || !s.Prefix.Contains(s.Range.First) || !s.Prefix.Contains(s.Range.Last) ||
			s.Range.First.Compare(s.Range.Last) > 0 || s.Prefix.Bits() < 8 || s.Prefix.Bits() > 31 {
			t.Errorf("%q became %+v", text, s)
		}
		if _, err := netip.ParsePrefix(s.Prefix.String()); err != nil {
			t.Error(err)
		}
	})
}
