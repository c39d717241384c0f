package bgp

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func whole() Config {
	return Config{
		AS: 65002, Router: netip.MustParsePrefix("50.1.1.2/24"), Router6: netip.MustParsePrefix("2001:db8:50::2/64"),
		Neighbors: []Neighbor{
			{Addr: netip.MustParseAddr("50.1.1.200"), AS: 500},
			{Addr: netip.MustParseAddr("2001:db8:50::c8"), AS: 65002, Password: "x"},
			{Addr: netip.MustParseAddr("fe80::1"), AS: 4200000000},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := whole().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no AS", func(c *Config) { c.AS = 0 }, "AS 0: expected"},
		{"no router", func(c *Config) { c.Router = netip.Prefix{} }, `router address ""`},
		{"router of another family", func(c *Config) { c.Router = c.Router6 }, "expected the IPv4 address"},
		{"router is the subnet", func(c *Config) { c.Router = netip.MustParsePrefix("50.1.1.0/24") }, `router address "50.1.1.0/24"`},
		{"router is broadcast", func(c *Config) { c.Router = netip.MustParsePrefix("50.1.1.255/24") }, `router address "50.1.1.255/24"`},
		{"router is multicast", func(c *Config) { c.Router = netip.MustParsePrefix("224.1.1.2/24") }, `router address "224.1.1.2/24"`},
		{"router is loopback", func(c *Config) { c.Router = netip.MustParsePrefix("127.0.0.1/8") }, `router address "127.0.0.1/8"`},
		{"IPv6 router of another family", func(c *Config) { c.Router6 = netip.MustParsePrefix("50.1.1.3/24") }, "expected the IPv6 address"},
		{"no neighbor", func(c *Config) { c.Neighbors = nil }, "has no neighbor"},
		{"neighbor without AS", func(c *Config) { c.Neighbors[0].AS = 0 }, "neighbor 50.1.1.200: AS 0"},
		{"neighbor is the router", func(c *Config) { c.Neighbors[0].Addr = c.Router.Addr() }, "is the router itself"},
		{"neighbor far away", func(c *Config) { c.Neighbors[0].Addr = netip.MustParseAddr("60.1.1.1") }, "not in the router's subnet 50.1.1.0/24"},
		{"neighbor named twice", func(c *Config) { c.Neighbors[1] = c.Neighbors[0] }, "named twice"},
		{"long password", func(c *Config) { c.Neighbors[0].Password = strings.Repeat("x", 81) }, "has 81 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := whole()
			c.change(&bad)
			err := bad.Validate()
			if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected an Invalid with %q", err, c.want)
			}
			s := New(Options{})
			if err := s.Configure(&bad); err == nil || s.wanted != nil {
				t.Errorf("Configure gives %v and wants %+v, expected a refusal", err, s.wanted)
			}
		})
	}
	if c := whole(); true {
		c.Router = netip.MustParsePrefix("50.1.1.2/31") // RFC 3021
		c.Neighbors = []Neighbor{{Addr: netip.MustParseAddr("50.1.1.3"), AS: 1}}
		if err := c.Validate(); err != nil {
			t.Errorf("a point-to-point link: %v", err)
		}
	}
}
