package commands

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
)

// wrong are command lines that must be refused, each with the words by which the error
// names what is wrong. {long} is a name of 257 bytes.
const wrong = `
	tenant create                                                        | Tenant name required
	tenant create a b                                                    | Tenant name required
	tenant create a_b                                                    | tenantName string invalid format
	tenant create a.                                                     | tenantName string invalid format
	tenant create {long}                                                 | tenantName string too long
	tenant create default                                                | tenant default exists
	tenant rm absent                                                     | tenant not found
	tenant rm default                                                    | cannot delete tenant default: it has 1 endpoint groups
	tenant create x --color red                                          | unknown option -color
	tenant crate x                                                       | unknown command "crate"
	tennant ls                                                           | unknown command "tennant"
	net create                                                           | Network name required
	net create m                                                         | Subnet is required
	net create m -s                                                      | option -s needs a value
	net create m -s 10.2.1.0                                             | subnet string invalid format
	net create m -s 10.2.1.0/32                                          | subnet string invalid format
	net create m -s 10.2.1.0/7                                           | subnet length 7
	net create m -s 10.2.1.256/24                                        | subnet string invalid format
	net create m -s 10.2.1.9-10.2.1.3/24                                 | subnet format not valid
	net create m -s 10.2.1.9-10.2.2.3/24                                 | leaves subnet 10.2.1.0/24
	net create m -s 2001:db8::/64                                        | subnet string invalid format
	net create m -s 10.2.1.0/24 -g 10.2.1.x                              | gateway "10.2.1.x"
	net create m -s 10.2.1.0/24 -g 10.3.1.1                              | gateway 10.3.1.1
	net create m -s 10.2.1.0/24 -g 2001:db8::1                           | gateway string invalid format
	net create m -s 10.2.1.0/24 -e gre                                   | encap string invalid format
	net create m -s 10.2.1.0/24 -p many                                  | option -p: expected a number
	net create m -s 10.2.1.0/24 -p -1                                    | pktTag Value Out of bound
	net create m -s 10.2.1.0/24 -p 20000                                 | requested vxlan is out of range - vxlan:20000
	net create m -s 10.2.1.0/24 -e vlan -p 5000                          | requested vlan not available - vlan:5000
	net create m -s 10.2.1.0/24 -n storage                               | nwType string invalid format
	net create m -s 10.2.1.0/24 -tag a/b                                 | cfgdTag string invalid format
	net create m -s 10.2.1.0/24 -s6 2001:db8::/128                       | ipv6Subnet string invalid format
	net create m -s 10.2.1.0/24 -s6 2001:db8::/64 -g6 2001:db9::1        | 2001:db9::1
	net create m -s 10.1.1.128/25                                        | network n conflicts with subnet 10.1.1.128/25
	net create m -s 10.2.1.0/24 -t absent                                | Tenant not found: absent
	net create n -s 10.2.1.0/24                                          | network default:n exists
	net create g -s 10.2.1.0/24                                          | EndpointGroup g conflicts with the network name
	net create a/../b -s 10.2.1.0/24                                     | networkName string invalid format
	net rm n                                                             | cannot delete network default:n: it has endpoint groups: g
	net ls extra                                                         | More arguments than required
	net ls -t absent                                                     | tenant not found
	net inspect absent                                                   | network not found
	group create n                                                       | Network and group name required
	group create absent h                                                | Network not found: default:absent
	group create n n                                                     | Network n conflicts with the endpoint group name
	group create n h -p absent                                           | Policy not found: default:absent
	group create n h -n absent                                           | netprofile not found: default:absent
	group create n h -e absent                                           | External contracts group absent not found
	group create n h -r 10.9.1.1-10.9.1.5                                | 10.9.1.1
	group create n h -r 10.1.1.9-10.1.1.5                                | 10.1.1.9
	group create m g                                                     | cannot change network association
	policy create p/q                                                    | policyName string invalid format
	policy rm p                                                          | Policy is being used
	policy rule-add p                                                    | Policy name and Rule ID required
	policy rule-add absent 1                                             | Policy not found: default:absent
	policy rule-add p 1                                                  | rule default:p:1 exists
	policy rule-add p 2 -d both                                          | direction "both"
	policy rule-add p 2 -j accept                                        | action string invalid format
	policy rule-add p 2 -l xyz                                           | protocol string invalid format
	policy rule-add p 2 -l 256                                           | protocol string invalid format
	policy rule-add p 2 -P 65536                                         | port Value Out of bound
	policy rule-add p 2 -p 101                                           | priority Value Out of bound
	policy rule-add p 2 -i 10.1.1.10-20                                  | fromIpAddress string invalid format
	policy rule-add p 2 -i 10.1.1.0/33                                   | fromIpAddress string invalid format
	policy rule-add p 2 -e g                                             | to-group
	policy rule-add p 2 -d out -i 10.1.1.1                               | from-ip-address
	policy rule-add p 2 -g absent                                        | EndpointGroup not found: default:absent
	policy rule-rm p 9                                                   | rule not found
	netprofile create f -b fast                                          | bandwidth string invalid format
	netprofile create f -b 10ms                                          | bandwidth string invalid format
	netprofile create f -d 64                                            | DSCP Value Out of bound
	netprofile create f -s 1                                             | burst 1 of netprofile default:f is too small
	app-profile create a -g absent                                       | EndpointGroup default:absent not found
	bgp create h                                                         | router-ip
	bgp create h --router-ip 50.1.1.1/24 --neighbor x --as 1 --neighbor-as 2 | neighbor "x"
	bgp create h_1 --router-ip 50.1.1.1/24 --neighbor 50.1.1.2 --as 1 --neighbor-as 2 | hostname string invalid format
	service create s -s n -l a -p 80:80:tcp                              | selectors: "a"
	service create s -s n -l a=b -p 80                                   | ports: "80"
	service create s -s n -l a=b -p 0:80:tcp                             | ports: "0:80:tcp"
	service create s -s absent -l a=b -p 80:80:tcp                       | Network not found: default:absent
	service create s -s n -l a=b -p 80:80:tcp -ip 10.7.1.1               | requested address is out of range: 10.7.1.1
	external-contracts create c -c -p -a x                               | Exactly one of consumed and provided is required
	external-contracts create c -c                                       | At least one contract is required
	global set -v 1-5000                                                 | vlans "1-5000"
	global set -v abcd                                                   | vlans string invalid format
	global set -x 1-20000                                                | vxlans "1-20000"
	global set -s 10.0.0.0/24                                            | pvtSubnet string invalid format
	global set -f xyz                                                    | networkInfraType string invalid format
	global set -b bridge                                                 | forwarding mode
	global set -a maybe                                                  | arpMode string invalid format
	aci-gw set -e maybe -d dom                                           | enforcePolicies string invalid format
	aci-gw set -d dom -p nonsense                                        | pathBindings string invalid format
	endpoint inspect absent                                              | endpoint not found
	apply -f /nonexistent                                                | /nonexistent
	export -t absent                                                     | tenant not found
`

// TestWrong types each wrong command line: the answer is one line that names what is
// wrong, the exit status is not 0, and the store is as it was.
func TestWrong(t *testing.T) {
	store := memory.New()
	url := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	run := func(line string) (status int, stderr string) {
		var errors bytes.Buffer
		args := strings.Fields(strings.ReplaceAll(line, "{long}", strings.Repeat("x", 257)))
		status = Run(t.Context(), append([]string{"netctl", "--netmaster", url}, args...), strings.NewReader(""), new(bytes.Buffer), &errors)
		return status, errors.String()
	}
	for _, line := range []string{
		"net create n -s 10.1.1.0/24", "policy create p", "group create n g -p p", "policy rule-add p 1",
	} {
		if status, stderr := run(line); status != exitOK {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	before := content(t, store)
	count := 0
	for line := range strings.Lines(strings.TrimSpace(wrong)) {
		line, want, _ := strings.Cut(strings.TrimSpace(line), "|")
		line, want = strings.TrimSpace(line), strings.TrimSpace(want)
		count++
		t.Run(line, func(t *testing.T) {
			status, stderr := run(line)
			if status == exitOK || status > exitLocal {
				t.Errorf("exit status %d", status)
			}
			if !strings.HasPrefix(stderr, "Error: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("not one line: %q", stderr)
			}
			if !strings.Contains(stderr, want) {
				t.Errorf("%q does not say %q", stderr, want)
			}
			if diff := cmp.Diff(before, content(t, store)); diff != "" {
				t.Errorf("the store has changed (-before +after):\n%s", diff)
			}
		})
	}
	if count < 60 {
		t.Errorf("there are %d wrong inputs, want at least 60", count)
	}
}

// content is everything in the store, by key.
func content(t *testing.T, store objdb.Store) map[string]string {
	t.Helper()
	kvs, _, err := store.List(context.Background(), "/")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string, len(kvs))
	for _, kv := range kvs {
		all[kv.Key] = string(kv.Value)
	}
	return all
}
