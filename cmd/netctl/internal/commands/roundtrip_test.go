package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// object is an object of a file.
type object map[string]any

// TestRoundTrip applies random sets of objects, in random order; the same ones in every
// run, and more in long ones. What is exported then changes nothing when it is applied
// again, and makes the same of another netmaster.
func TestRoundTrip(t *testing.T) {
	seeds := 25
	if os.Getenv("CONTIV_LONG") != "" {
		seeds = 200
	}
	sets := rapid.Custom(func(rt *rapid.T) []object { return rapid.Permutation(objects(rt)).Draw(rt, "order") })
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			text, err := json.Marshal(sets.Example(seed))
			if err != nil {
				t.Fatal(err)
			}
			first, second := netmaster(t), netmaster(t)
			netctl(t, first, string(text), "apply", "-f", "-")
			exported := netctl(t, first, "", "export")
			for line := range strings.Lines(netctl(t, first, exported, "apply", "-f", "-")) {
				if !strings.HasSuffix(line, ": unchanged\n") {
					t.Errorf("of what was exported: %s", line)
				}
			}
			netctl(t, second, exported, "apply", "-f", "-")
			if diff := cmp.Diff(exported, netctl(t, second, "", "export")); diff != "" {
				t.Errorf("another netmaster (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(netctl(t, first, "", "export", "-j"), netctl(t, second, "", "export", "-j")); diff != "" {
				t.Errorf("as JSON (-first +second):\n%s", diff)
			}
		})
	}
}

func netmaster(t *testing.T) string {
	return apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
}

// netctl runs a command that must succeed and returns what it prints.
func netctl(t *testing.T, url, stdin string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"netctl", "--netmaster", url}, args...)
	if status := Run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr); status != exitOK {
		t.Fatalf("%v: exit status %d\n%s%s\n%s", args, status, &stdout, &stderr, stdin)
	}
	return stdout.String()
}

// objects draws a set of objects that can exist together.
func objects(rt *rapid.T) []object {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, label) }
	number := func(label string, most int) int { return rapid.IntRange(0, most).Draw(rt, label) }
	some := func(label string, from []string) []string {
		if len(from) == 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(rt, label)
	}
	all := []object{{
		"kind": "global", "vlans": "2-4000", "vxlans": "1-10000", "pvtSubnet": "172.19.0.0/16", "arpMode": pick("arp", "", "proxy", "flood"),
	}}
	if number("gateway", 1) == 1 {
		all = append(all, object{"kind": "aciGw", "physicalDomain": "yes", "enforcePolicies": pick("enforce", "yes", "no")})
	}
	for i := range number("hosts", 2) {
		all = append(all, object{"kind": "Bgp", "hostname": fmt.Sprint("h", i), "routerip": "50.1.1.1/24", "as": 65000 + i, "neighbor": "50.1.1.2"})
	}
	for i := range 1 + number("tenants", 2) {
		tenant := pick("name", "default", "true", "1.5", "a-b") + []string{"", "x", "y"}[i]
		if number("listed", 1) == 1 || tenant != "default" { // that one is there from the start
			all = append(all, object{"kind": "tenant", "tenantName": tenant})
		}
		in := func(kind string, o object) {
			o["kind"], o["tenantName"] = kind, tenant
			all = append(all, o)
		}
		var policies, profiles, contracts, networks, groups []string
		for j := range number("policies", 2) {
			policies = append(policies, fmt.Sprint("p", j))
			in("policy", object{"policyName": policies[j]})
		}
		for j := range number("profiles", 2) {
			profiles = append(profiles, fmt.Sprint(j))
			in("netprofile", object{"profileName": j, "bandwidth": pick("bandwidth", "", "10 Gbps", "1g"), "DSCP": number("dscp", 63), "burst": 2 + number("burst", 9)})
		}
		for j := range number("contracts", 2) {
			contracts = append(contracts, fmt.Sprint("c", j))
			in("extContractsGroup", object{"contractsGroupName": contracts[j], "contractsType": "provided", "contracts": []string{"uni/tn-a: b", "#x", ""}[:number("dns", 3)]})
		}
		for j := range number("networks", 2) {
			networks = append(networks, fmt.Sprint("n", j))
			n := object{"networkName": networks[j], "encap": pick("encap", "vlan", "vxlan"), "subnet": fmt.Sprintf("10.%d.1.10-10.%d.1.90/24", j, j), "cfgdTag": pick("tag", "", "007")}
			if number("v6", 1) == 1 {
				n["ipv6Subnet"], n["ipv6Gateway"], n["gateway"] = fmt.Sprintf("2001:db8:%d::/64", j), fmt.Sprintf("2001:db8:%d::1", j), fmt.Sprintf("10.%d.1.254", j)
			}
			delete(n, map[bool]string{true: "cfgdTag"}[j > 0 || i > 0]) // tags are names of their own
			in("network", n)
		}
		for j := range min(len(networks), number("groups", 2)) {
			groups = append(groups, fmt.Sprint("g", j))
			g := object{"groupName": groups[j], "networkName": networks[j], "policies": some("under", policies), "extContractsGrps": some("contracts", contracts)}
			if profile := some("profile", profiles); len(profile) > 0 {
				g["netProfile"] = profile[0]
			}
			if number("pool", 1) == 1 {
				g["ipPool"] = fmt.Sprintf("10.%d.1.20-10.%d.1.30", j, j)
			}
			in("endpointGroup", g)
		}
		if len(groups) > 0 {
			in("appProfile", object{"appProfileName": "app", "endpointGroups": some("apps", groups)})
		}
		if len(networks) > 0 {
			in("serviceLB", object{"serviceName": "s", "networkName": networks[0], "ports": []string{"80:8080:tcp"}, "selectors": []string{"app=web"}})
		}
		for _, policy := range policies {
			for j := range number("rules", 2) {
				r := object{"policyName": policy, "ruleId": j, "direction": pick("direction", "in", "out"), "action": pick("action", "allow", "deny", "reject"), "protocol": pick("protocol", "", "tcp", "17"), "port": number("port", 65535)}
				side := map[any]string{"in": "from", "out": "to"}[r["direction"]]
				if peer := some("peer", groups); len(peer) > 0 {
					r[side+"EndpointGroup"] = peer[0]
				} else if peer := some("peer network", networks); len(peer) > 0 {
					r[side+"Network"] = peer[0]
				}
				in("rule", r)
			}
		}
	}
	return all
}
