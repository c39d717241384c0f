package openapi

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
)

var update = flag.Bool("update", false, "write the document anew") // a flag

const committed = "../../docs/openapi.json"

// TestCommitted holds docs/openapi.json to the model.
func TestCommitted(t *testing.T) {
	got, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(committed, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/openapi.json is not what the model says; run this test with -update (-committed +model):\n%s", diff)
	}
}

// TestReferences checks that every reference leads somewhere, and operation ids are
// different.
func TestReferences(t *testing.T) {
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), `"$ref": "`) {
		ref, _, _ := strings.Cut(part, `"`)
		if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok && d.Components.Schemas[name] == nil {
			t.Errorf("nothing at %s", ref)
		}
	}
	ids := map[string]bool{}
	for path, item := range d.Paths {
		for _, o := range []*operation{item.Get, item.Post, item.Put, item.Delete} {
			if o == nil {
				continue
			}
			if ids[o.OperationID] {
				t.Errorf("%s: operation id %s is not the first", path, o.OperationID)
			}
			ids[o.OperationID] = true
		}
	}
}

// TestConstraints holds the description of each field to the validation of its kind: of
// a valid object, what the description allows is accepted and what it excludes is refused.
func TestConstraints(t *testing.T) {
	check(t, contivmodel.TenantKind(), contivmodel.Tenant{TenantName: "t"})
	check(t, contivmodel.NetworkKind(), contivmodel.Network{TenantName: "t", NetworkName: "n", Subnet: "10.1.1.0/24", Encap: "vlan"})
	check(t, contivmodel.EndpointGroupKind(), contivmodel.EndpointGroup{TenantName: "t", NetworkName: "n", GroupName: "g"})
	check(t, contivmodel.PolicyKind(), contivmodel.Policy{TenantName: "t", PolicyName: "p"})
	check(t, contivmodel.RuleKind(), contivmodel.Rule{TenantName: "t", PolicyName: "p", RuleID: "r", Action: "allow", Direction: "in"})
	check(t, contivmodel.NetprofileKind(), contivmodel.Netprofile{TenantName: "t", ProfileName: "p"})
	check(t, contivmodel.AppProfileKind(), contivmodel.AppProfile{TenantName: "t", AppProfileName: "p"})
	check(t, contivmodel.BgpKind(), contivmodel.Bgp{Hostname: "h", Routerip: "10.1.1.1/24"})
	check(t, contivmodel.ServiceLBKind(), contivmodel.ServiceLB{
		TenantName: "t", NetworkName: "n", ServiceName: "s", Ports: []string{"80:80:TCP"}, Selectors: []string{"a=b"},
	})
	check(t, contivmodel.ExtContractsGroupKind(), contivmodel.ExtContractsGroup{TenantName: "t", ContractsGroupName: "c", ContractsType: "provided"})
	check(t, contivmodel.GlobalKind(), contivmodel.Global{Name: "global", PvtSubnet: "172.19.0.0/16", Vlans: "1-2", Vxlans: "1-2"})
	check(t, contivmodel.AciGwKind(), contivmodel.AciGw{Name: "aciGw", EnforcePolicies: "yes", IncludeCommonTenant: "no", PhysicalDomain: "d"})
}

// TestKinds checks that the document has all kinds, with the fields of the model.
func TestKinds(t *testing.T) {
	d := build()
	for _, kind := range contivmodel.Kinds() {
		about := kind.Description()
		object, _ := kind.GoTypes()
		if d.Paths["/api/v1/"+about.Collection+"/"].Get == nil || d.Components.Schemas[object.Name()] == nil {
			t.Errorf("%s is missing", about.Type)
		}
		for _, f := range about.Fields {
			if known := slices.ContainsFunc(contivmodel.Kinds(), func(k contivmodel.AnyKind) bool { return k.Description().Type == f.Refers }); f.Refers != "" && !known {
				t.Errorf("%s.%s refers to %q, which is no kind", about.Type, f.Name, f.Refers)
			}
		}
		for _, n := range about.Names {
			if f, ok := about.Field(n); !ok || !f.Naming || !f.Immutable {
				t.Errorf("%s.%s is part of the key, but described as %+v", about.Type, n, f)
			}
		}
	}
}

func check[T, O any](t *testing.T, kind contivmodel.Kind[T, O], valid T) {
	t.Helper()
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			fields[name] = f
		}
	}
	about := kind.Description()
	for name := range fields {
		if _, ok := about.Field(name); !ok && name != "key" && name != "links" && name != "link-sets" {
			t.Errorf("%s: nothing is said of field %s", kind.Type, name)
		}
	}
	with := func(name string, v any) error {
		obj := valid
		reflect.ValueOf(&obj).Elem().FieldByIndex(fields[name].Index).Set(reflect.ValueOf(v))
		reflect.ValueOf(&obj).Elem().FieldByName("Key").SetString(kind.Ident(&obj))
		return kind.Validate(&obj)
	}
	for _, f := range about.Fields {
		name := f.Name
		field, ok := fields[name]
		if !ok || f.Text == "" {
			t.Errorf("%s: there is no field %s, or nothing says what it means", kind.Type, name)
			continue
		}
		isText := field.Type.Kind() == reflect.String
		if want := map[reflect.Kind]contivmodel.FieldType{
			reflect.String: contivmodel.TextField, reflect.Int: contivmodel.NumberField, reflect.Slice: contivmodel.ListField, reflect.Bool: contivmodel.SwitchField,
		}[field.Type.Kind()]; f.Type != want {
			t.Errorf("%s.%s: type %s, want %s", kind.Type, name, f.Type, want)
		}
		refused := func(why string, v any) {
			t.Helper()
			if with(name, v) == nil {
				t.Errorf("%s.%s: %s is accepted", kind.Type, name, why)
			}
		}
		accepted := func(why string, v any) {
			t.Helper()
			if err := with(name, v); err != nil {
				t.Errorf("%s.%s: %s is refused: %v", kind.Type, name, why, err)
			}
		}
		if isText {
			if f.Required {
				refused("nothing", "")
			} else {
				accepted("nothing", "")
			}
			for _, w := range f.Values {
				accepted("the word "+w, w)
			}
			if len(f.Values) > 0 {
				refused("another word", "x")
			}
			if f.MaxBytes > 0 {
				refused("a text that is too long", strings.Repeat("x", f.MaxBytes+1))
			}
			if f.Pattern != "" {
				like := regexp.MustCompile(f.Pattern)
				for _, s := range []string{"a", "a.b-c", "a--b", "9", "-a", "a-", "a.", ".a", "a..b", "a_b", "a.-b", "a:b", "a b", "a\n", "ä"} {
					err := with(name, s)
					if formed := err == nil || err.Error() != name+" string invalid format"; formed != like.MatchString(s) {
						t.Errorf("%s.%s: %q matches the pattern: %t, but validation says: %v", kind.Type, name, s, !formed, err)
					}
				}
			}
		}
		if f.High > 0 {
			accepted("the highest number", f.High)
			refused("a higher number", f.High+1)
			refused("a negative number", -1)
		}
		if f.Required && !isText {
			refused("an empty list", []string(nil))
		}
	}
}
