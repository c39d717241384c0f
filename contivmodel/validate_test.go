package contivmodel

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/utils/errs"
)

// FuzzValidate puts any text, number or list into each field of a valid object of each
// kind. No validator goes down; what it refuses it names, in one line of kind Invalid;
// what it accepts it accepts again, unchanged.
func FuzzValidate(f *testing.F) {
	for _, text := range []string{
		"", "a", "a.b-c", "10.1.1.1", "10.1.1.0/24", "10.1.1.1-10.1.1.9/24", "10.1.1.1-9/24", "2001:db8::/64", "2001:db8::1", "1-4094", "172.19.0.0/16",
		"tcp", "255", "in", "allow", "vlan", "infra", "yes", "10 Gbps", "80:80:Tcp", "a=b", "topology/pod-1/paths-101/pathep-[eth1/14]", "a\nb", "\xff", strings.Repeat("x", 3000),
	} {
		f.Add(text, 0)
	}
	f.Add("x", -1)
	f.Add("x", 1<<40)
	f.Fuzz(func(t *testing.T, text string, number int) {
		vary(t, TenantKind(), Tenant{TenantName: "t"}, text, number)
		vary(t, NetworkKind(), Network{TenantName: "t", NetworkName: "n", Subnet: "10.1.1.0/24", Encap: "vlan"}, text, number)
		vary(t, EndpointGroupKind(), EndpointGroup{TenantName: "t", NetworkName: "n", GroupName: "g"}, text, number)
		vary(t, PolicyKind(), Policy{TenantName: "t", PolicyName: "p"}, text, number)
		vary(t, RuleKind(), Rule{TenantName: "t", PolicyName: "p", RuleID: "r", Action: "allow", Direction: "in"}, text, number)
		vary(t, RuleKind(), Rule{TenantName: "t", PolicyName: "p", RuleID: "r", Action: "deny", Direction: "out"}, text, number)
		vary(t, NetprofileKind(), Netprofile{TenantName: "t", ProfileName: "p"}, text, number)
		vary(t, AppProfileKind(), AppProfile{TenantName: "t", AppProfileName: "p"}, text, number)
		vary(t, BgpKind(), Bgp{Hostname: "h", Routerip: "10.1.1.1/24"}, text, number)
		vary(t, ServiceLBKind(), ServiceLB{
			TenantName: "t", NetworkName: "n", ServiceName: "s", Ports: []string{"80:80:TCP"}, Selectors: []string{"a=b"},
		}, text, number)
		vary(t, ExtContractsGroupKind(), ExtContractsGroup{TenantName: "t", ContractsGroupName: "c", ContractsType: "provided"}, text, number)
		vary(t, GlobalKind(), Global{Name: "global", PvtSubnet: "172.19.0.0/16", Vlans: "1-2", Vxlans: "1-2"}, text, number)
		vary(t, AciGwKind(), AciGw{Name: "aciGw", EnforcePolicies: "yes", IncludeCommonTenant: "no", PhysicalDomain: "d"}, text, number)
		vary(t, VolumeKind(), Volume{TenantName: "t", VolumeName: "v"}, text, number)
		vary(t, VolumeProfileKind(), VolumeProfile{TenantName: "t", VolumeProfileName: "v"}, text, number)
	})
}

// vary changes one field of a valid object after the other.
func vary[T, O any](t *testing.T, kind Kind[T, O], valid T, text string, number int) {
	t.Helper()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		obj := valid
		field := reflect.ValueOf(&obj).Elem().FieldByIndex(f.Index)
		switch {
		case name == "key", f.Anonymous:
			continue
		case field.Kind() == reflect.String:
			field.SetString(text)
		case field.Kind() == reflect.Int:
			field.SetInt(int64(number))
		case field.Kind() == reflect.Slice:
			field.Set(reflect.ValueOf([]string{"80:80:udp", text}))
			if name == "selectors" {
				field.Set(reflect.ValueOf([]string{"a=b", text}))
			}
		default:
			continue // links
		}
		kind.Strip(&obj)
		if err := kind.Validate(&obj); err != nil {
			says := err.Error()
			if !errs.Is(err, errs.Invalid) || strings.ContainsAny(says, "\n\r") || !strings.Contains(says, name) && says != "Invalid Key" {
				t.Errorf("%s.%s = %q, %d: kind %v: %q", kind.Type, name, text, number, errs.KindOf(err), says)
			}
			continue
		}
		again := obj
		if err := kind.Validate(&again); err != nil {
			t.Errorf("%s.%s = %q, %d: refused the second time: %v", kind.Type, name, text, number, err)
		}
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Errorf("%s.%s = %q, %d: changed by the second time:\n%s", kind.Type, name, text, number, diff)
		}
	}
}
