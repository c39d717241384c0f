package manifest

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

// FuzzParse checks that no file brings the parser down, that errors are one line of kind
// Invalid, and that what is read is the same after it was written, in either form.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"kind: network\ntenantName: t\nnetworkName: n\nencap: vlan\nsubnet: 10.1.1.0/24\npktTag: 7\n---\nkind: tenant\ntenantName: yes\n",
		"- {kind: rule, tenantName: t, policyName: p, ruleId: 1, direction: in, action: deny}\n- {kind: Bgp, hostname: h, routerip: 10.1.1.1/24, as: 0x10}\n",
		`[{"kind": "serviceLB", "tenantName": "t", "serviceName": "s", "networkName": "n", "ports": ["80:80:tcp"], "selectors": ["a=b\nc", " =\n"]}]`,
		"&a {kind: extContractsGroup, tenantName: t, contractsGroupName: c, contractsType: provided, contracts: [\"\\0\", ~]}\n--- *a\n",
		"kind: aciGw\nphysicalDomain: d\n", "kind: global\nvlans: 1-2\nvxlans: 1-2\npvtSubnet: 10.0.0.0/16\n", "---\n...\n---\n", "# nothing", "a: &b [*b]", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		items, err := Parse("f", text)
		if err != nil {
			if !errs.Is(err, errs.Invalid) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("kind %v: %q", errs.KindOf(err), err)
			}
			return
		}
		for name, write := range map[string]func([]Item) ([]byte, error){"YAML": YAML, "JSON": JSON} {
			written, err := write(items)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse("g", written)
			if err != nil {
				t.Fatalf("%s: %v:\n%s", name, err, written)
			}
			second, err := write(again)
			if err != nil {
				t.Fatal(err)
			}
			if string(second) != string(written) || len(again) != len(items) {
				t.Errorf("%s: %s became %s", name, written, second)
			}
		}
	})
}
