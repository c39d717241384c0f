package ofnet

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

// No flow of any mode commits a connection with a NAT that may not change anything: Open
// vSwitch 3.1 aborts on those (decision 0019).
func TestNoIdentityNAT(t *testing.T) {
	committed := regexp.MustCompile(`ct\(commit[^()]*,(nat(\([^()]*\))?)`)
	ported := regexp.MustCompile(`^nat\(src=(\S+):(\d+-\d+)\)$`)
	seen := 0
	check := func(mode string, program Program) {
		for _, f := range program.Flows {
			flow := f.String()
			for _, m := range committed.FindAllStringSubmatch(flow, -1) {
				seen++
				nat := m[1]
				switch p := ported.FindStringSubmatch(nat); {
				case nat == "nat", nat == "nat(src)", nat == "nat(dst)":
					t.Errorf("%s: translates nothing: %s", mode, flow)
				case p != nil:
					// Half of the source ports was matched here or put into a
					// register.
					high, low := strings.Contains(flow, "tp_src=0x8000/0x8000") || strings.Contains(flow, "reg8=0x4,"),
						strings.Contains(flow, "tp_src=0x0/0x8000") || strings.Contains(flow, "reg8=0x5,")
					if !(high && p[2] == "1024-32767" || low && p[2] == "32768-65535") {
						t.Errorf("%s: may choose the port there is: %s", mode, flow)
					}
				default:
					addr := strings.TrimSuffix(nat[strings.Index(nat, "=")+1:], ")")
					if a, err := netip.ParseAddrPort(addr); err == nil {
						addr = a.Addr().String()
					}
					before, _, _ := strings.Cut(flow, "actions=")
					for _, same := range []string{"nw_src=", "nw_dst=", "ipv6_src=", "ipv6_dst="} {
						if strings.Contains(before+",", same+addr+",") && !strings.Contains(before, "reg11=") {
							t.Errorf("%s: translates an address to itself: %s", mode, flow)
						}
					}
				}
			}
		}
	}
	for mode, set := range hostModes {
		p, programs := hostFlows(t, set)
		for _, program := range programs {
			check(mode, program)
		}
		check(mode, p.Program(webService(vxNet1, 0)))
		// A service with the address of its own provider.
		own := webService(vxNet1, 0)
		own.Frontends = own.Frontends[:1]
		own.Frontends[0].Addr = own.Frontends[0].Providers[0].Addr
		for _, f := range p.Program(own).Flows {
			if strings.Contains(f.String(), "nat(dst="+own.Frontends[0].Addr.String()) {
				t.Errorf("%s: a service at its provider's address is translated: %s", mode, f.String())
			}
		}
		same := local1
		same.Private4, same.OwnsIPv4 = same.IPv4, true
		check(mode, p.Program(same))
	}
	_, _, far := snatFlows(t)
	for _, program := range far {
		check("far", program)
	}
	if seen == 0 {
		t.Error("no translation was looked at")
	}
}
