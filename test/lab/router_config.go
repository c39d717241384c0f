package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const birdConf = "/etc/contiv-bird.conf"

// files are the configuration of the router's daemons.
func (r *Router) files() map[string]string {
	if r.Daemon == RouterBIRD {
		return map[string]string{birdConf: r.bird()}
	}
	return map[string]string{"/etc/contiv-zebra.conf": "", "/etc/contiv-bgpd.conf": r.bgpd(), "/etc/frr/vtysh.conf": ""}
}

func (r *Router) hostAddrs() (addrs []netip.Addr) {
	for n := 1; n <= r.lab.cfg.Hosts; n++ {
		addrs = append(addrs, netip.MustParsePrefix(HostRouterIP(n)).Addr())
	}
	return addrs
}

// bgpd configures FRR: all hosts are neighbors, and may be missing.
func (r *Router) bgpd() string {
	var b, four, six strings.Builder
	fmt.Fprintf(&b, `router bgp %d
 bgp router-id %s
 bgp log-neighbor-changes
 no bgp ebgp-requires-policy
 no bgp network import-check
 no bgp default ipv4-unicast
 timers bgp 10 30
`, RoutersAS, RouterIP(r.Number))
	for i, a := range r.hostAddrs() {
		fmt.Fprintf(&b, " neighbor %s remote-as %d\n neighbor %s timers connect 2\n", a, HostsAS, a)
		if r.lab.cfg.BGPPassword != "" {
			fmt.Fprintf(&b, " neighbor %s password %s\n", a, r.lab.cfg.BGPPassword)
		}
		if slices.Contains(r.lab.cfg.BGPTTLSecurity, i+1) {
			fmt.Fprintf(&b, " neighbor %s ttl-security hops 1\n", a)
		}
		fmt.Fprintf(&four, "  neighbor %s activate\n", a)
		fmt.Fprintf(&six, "  neighbor %s activate\n  neighbor %s route-map six out\n", a, a)
	}
	fmt.Fprintf(&b, ` address-family ipv4 unicast
  network 60.1.%d.0/24
  network %s/32
%s exit-address-family
 address-family ipv6 unicast
  network 2001:db8:60:%d::/64
  network %s/128
%s exit-address-family
!
route-map six permit 10
 set ipv6 next-hop global %s
`, r.Number, AnycastIP, four.String(), r.Number, AnycastIP6, six.String(), RouterIP6(r.Number))
	return b.String()
}

// bird configures BIRD to do the same.
func (r *Router) bird() string {
	var b strings.Builder
	password := ""
	if r.lab.cfg.BGPPassword != "" {
		password = fmt.Sprintf("  password %q;\n", r.lab.cfg.BGPPassword)
	}
	fmt.Fprintf(&b, `router id %s;
log stderr all;
protocol device { }
protocol direct { ipv4; ipv6; interface "out"; }
protocol kernel { ipv4 { export where source = RTS_BGP; }; merge paths on; persist; graceful restart; }
protocol kernel { ipv6 { export where source = RTS_BGP; }; merge paths on; persist; graceful restart; }
protocol static { ipv4; route %s/32 via 60.1.%d.2; }
protocol static { ipv6; route %s/128 via 2001:db8:60:%d::2; }
template bgp hosts {
  local %s as %d;
%s  graceful restart on;
  hold time 30;
  connect retry time 2;
  connect delay time 1;
  error wait time 1, 4;
  ipv4 { import all; export where source != RTS_BGP; };
  ipv6 { import all; export where source != RTS_BGP; next hop address %s; };
}
`, RouterIP(r.Number), AnycastIP, r.Number, AnycastIP6, r.Number, RouterIP(r.Number), RoutersAS, password, RouterIP6(r.Number))
	for i, a := range r.hostAddrs() {
		security := ""
		if slices.Contains(r.lab.cfg.BGPTTLSecurity, i+1) {
			security = " ttl security on;"
		}
		fmt.Fprintf(&b, "protocol bgp host%d from hosts { neighbor %s as %d;%s }\n", i+1, a, HostsAS, security)
	}
	return b.String()
}
