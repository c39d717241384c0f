package hostnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// closedRules keep what comes by the guarded links from the ports in p.Closed. Answers to
// the host's own connections pass whatever their ports are. Rules come after translation
// of destinations: a Service that leads to a closed port opens nothing.
func (p Plan) closedRules() []rule {
	if len(p.Guarded) == 0 || len(p.Closed.Ports) == 0 && len(p.Closed.Tunnels) == 0 {
		return nil
	}
	from := "iifname " + anySet(quoted(p.Guarded))
	rules := []rule{{input, from + " ct direction reply accept"}, {forward, from + " ct direction reply accept"}}
	closed := p.Closed
	for _, proto := range []struct {
		name   string
		number uint8
	}{{"tcp", unix.IPPROTO_TCP}, {"udp", unix.IPPROTO_UDP}} {
		var ports []string
		for _, r := range closed.Ports {
			if r.Proto == proto.number {
				ports = append(ports, r.text())
			}
		}
		if proto.number == unix.IPPROTO_UDP && len(closed.Tunnels) > 0 {
			var tunnels []string
			for _, port := range closed.Tunnels {
				tunnels = append(tunnels, Ports{Low: port, High: port}.text())
			}
			match := from + " udp dport " + anySet(tunnels) + " drop"
			rules = append(rules, rule{input, match}, rule{forward, match})
		}
		if len(ports) == 0 {
			continue
		}
		to := proto.name + " dport " + anySet(ports) + " drop"
		rules = append(rules, rule{input, from + " " + to})
		for _, family := range []struct {
			name string
			is   func(netip.Addr) bool
		}{{"ip", netip.Addr.Is4}, {"ip6", netip.Addr.Is6}} {
			var hosts []string
			for _, a := range closed.Hosts {
				if family.is(a) {
					hosts = append(hosts, a.String())
				}
			}
			if len(hosts) > 0 {
				rules = append(rules, rule{forward, fmt.Sprintf("%s %s daddr %s %s", from, family.name, anySet(hosts), to)})
			}
		}
	}
	return rules
}

func (r Ports) text() string {
	if r.Low == r.High {
		return strconv.Itoa(int(r.Low))
	}
	return fmt.Sprintf("%d-%d", r.Low, r.High)
}

// quoted are names as nftables has them.
func quoted(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return out
}

// anySet is an anonymous set of nftables.
func anySet(elements []string) string {
	elements = slices.Clone(elements)
	slices.Sort(elements)
	return "{ " + strings.Join(slices.Compact(elements), ", ") + " }"
}
