package agent

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/state"
)

// setBgp stores a host's BGP speaker: this host's to run it, any host's to know which
// hosts are on one link.
func (a *Agent) setBgp(rec state.Bgp) {
	c, err := asSpeaker(rec)
	if rec.Hostname == a.cfg.HostLabel {
		a.speaker.rec = &rec
		a.declareSpeaker()
	} else if err != nil {
		a.cfg.Log.WithError(err).Error("a BGP speaker cannot be as it is configured")
	}
	a.setLink(rec.Hostname, c.Router.Masked())
}

func (a *Agent) removeBgp(host string) {
	if host == a.cfg.HostLabel {
		a.speaker.rec = nil
		a.declareSpeaker()
	}
	a.setLink(host, netip.Prefix{})
	delete(a.links, host)
}

// setLink stores the subnet in which a host meets its routers. Endpoints whose
// host thereby joins or leaves this host's link are reached differently.
func (a *Agent) setLink(host string, link netip.Prefix) {
	old := a.links[host]
	a.links[host] = link
	if old == link {
		return
	}
	for label, ids := range a.byHost {
		if label != host && host != a.cfg.HostLabel {
			continue
		}
		for id := range ids {
			if a.networks[a.endpoints[id].NetID].Encap == ofnet.VLAN {
				a.declare(id)
			}
		}
	}
}

// onOtherLink reports whether a host is known not to share this one's VLANs: both have
// routers, on different subnets. Then such a host is reached by routes only.
func (a *Agent) onOtherLink(host string) bool {
	own, other := a.links[a.cfg.HostLabel], a.links[host]
	return own.IsValid() && other.IsValid() && own != other
}

// asSpeaker reads a speaker's record. With an error the result is what could be read.
func asSpeaker(rec state.Bgp) (c bgp.Config, err error) {
	fail := func(what, value, expected string) {
		if err == nil {
			err = fmt.Errorf("BGP of host %s: %s %q: expected %s", rec.Hostname, what, value, expected)
		}
	}
	number := func(what, s string) uint32 {
		n, e := parseAS(s)
		if e != nil {
			fail(what, s, "1 to 4294967295")
		}
		return n
	}
	c.AS = number("AS", rec.As)
	router, length, _ := strings.Cut(rec.RouterIP, "/")
	router, _, _ = strings.Cut(router, "-") // of a range of addresses, the first
	if c.Router, _ = netip.ParsePrefix(router + "/" + length); !c.Router.IsValid() {
		fail("router address", rec.RouterIP, "ADDRESS/LENGTH")
	}
	if rec.RouterIP6 != "" {
		if c.Router6, _ = netip.ParsePrefix(rec.RouterIP6); !c.Router6.IsValid() {
			fail("IPv6 router address", rec.RouterIP6, "ADDRESS/LENGTH")
		}
	}
	add := func(text string, as uint32) {
		n := bgp.Neighbor{AS: as, Password: rec.Password, TTLSecurity: rec.TTLSecurity}
		if n.Addr, _ = netip.ParseAddr(text); !n.Addr.IsValid() {
			fail("neighbor", text, "an address")
		}
		c.Neighbors = append(c.Neighbors, n)
	}
	var as uint32
	if rec.Neighbor != "" || rec.NeighborAs != "" {
		as = number("neighbor AS", rec.NeighborAs)
	}
	if rec.Neighbor != "" {
		add(rec.Neighbor, as)
	}
	for _, text := range rec.Neighbors {
		if addr, own, other := strings.Cut(text, "@"); other {
			add(addr, number("AS of neighbor "+addr, own))
		} else {
			add(text, as)
		}
	}
	return c, err
}

// parseAS reads the number of an autonomous system, plain or with a dot (RFC 5396).
func parseAS(s string) (uint32, error) {
	if high, low, dotted := strings.Cut(s, "."); dotted {
		h, err := strconv.ParseUint(high, 10, 16)
		if err != nil {
			return 0, err
		}
		l, err := strconv.ParseUint(low, 10, 16)
		return uint32(h<<16 | l), err
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}
