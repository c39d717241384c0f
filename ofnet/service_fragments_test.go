package ofnet

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
)

// Flows for fragments match nothing that later fragments lack, and change addresses by
// connection tracking only (decision 0028).
func TestFlowsOfFragments(t *testing.T) {
	port := regexp.MustCompile(`[,=](udp|tcp|sctp|tp)_(src|dst)=|nat\(src=`)
	address := regexp.MustCompile(`(move|set_field|load):[^,]*->[^,]*(nw|ip|ipv6)_(src|dst)|->NXM_OF_IP|->NXM_NX_IPV6`)
	for mode, set := range hostModes {
		p, programs := hostFlows(t, set)
		programs["svc"] = p.Program(webService(vxNet1, 0))
		seen := 0
		for _, program := range programs {
			for _, f := range program.Flows {
				match, actions, _ := strings.Cut(f.String(), " actions=")
				if _, ok := f.Match.Get(of.FieldIPFrag); !ok || strings.Contains(match, "nw_frag=no") {
					continue
				}
				seen++
				if !strings.Contains(match, "nw_frag=first") && port.MatchString(strings.ReplaceAll(match, "ct_tp", "")) || port.MatchString(withoutLearn(actions)) {
					t.Errorf("%s: has to do with ports: %s", mode, f.String())
				}
				if address.MatchString(withoutLearn(actions)) {
					t.Errorf("%s: rewrites an address: %s", mode, f.String())
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no flow is of fragments", mode)
		}
	}
}

func withoutLearn(actions string) string {
	return regexp.MustCompile(`learn\([^()]*\)`).ReplaceAllString(actions, "")
}

// If a service has several UDP ports at an address, the port of a later fragment is
// unknown.
func TestFragmentsOfOnePort(t *testing.T) {
	p := vrouter(t)
	for ports, want := range map[int]bool{1: true, 2: false} {
		s := Service{ID: "dns", VRF: 1}
		for i := range ports {
			at := netip.AddrPortFrom(addr("10.1.1.200"), uint16(53+i))
			s.Frontends = append(s.Frontends, Frontend{Number: uint32(100 + i), Proto: of.ProtoUDP, Addr: at, Providers: providers("10.1.1.1:5353")})
		}
		got := false
		for _, f := range p.Program(s).Flows {
			_, of := f.Match.Get(of.FieldIPFrag)
			got = got || of
		}
		if got != want {
			t.Errorf("with %d ports, fragments find the service: %t", ports, got)
		}
	}
}

// The kernel puts datagrams together for good, so all that flows do with fragments for a
// service or from its providers is to track them once, and begin the table again.
func TestFragmentsInTheKernel(t *testing.T) {
	for mode, set := range hostModes {
		set.Kernel = true
		p, programs := hostFlows(t, set)
		programs["svc"] = p.Program(webService(vxNet1, 0))
		seen := map[table]int{}
		for _, program := range programs {
			for _, f := range program.Flows {
				match, actions, _ := strings.Cut(f.String(), " actions=")
				if !strings.Contains(match, "nw_frag=yes") {
					continue
				}
				if again := fmt.Sprintf("ct(table=%d,zone=NXM_NX_REG2[0..15])", f.Table); actions != again {
					t.Errorf("%s: %s: expected the actions %s", mode, f.String(), again)
				}
				for _, t := range []table{tableService, tableServiceReply} {
					if f.Table == p.to(t) {
						seen[t]++
					}
				}
			}
		}
		// Of both families: 2 addresses, 6 providers.
		if seen[tableService] != 2 || seen[tableServiceReply] != 6 {
			t.Errorf("%s: flows of fragments by table: %v", mode, seen)
		}
	}
}
