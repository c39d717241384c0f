package intent

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// MAC addresses with a meaning in every network: those of the router and the name server,
// those derived from addresses (of endpoints, services and the hosts' own ports), and those
// of hosts that route between their links.
var (
	routerMAC     = net.HardwareAddr{0x00, 0x00, 0x11, 0x11, 0x11, 0x11} // a constant
	nameServerMAC = net.HardwareAddr{0x02, 0x00, 0x00, 0x00, 0x00, 0x35} // a constant
)

// How their texts begin.
const (
	ofAddresses = "02:02:"
	ofHosts     = "02:03:"
)

// macFor returns the requested MAC address, if it is free in the network, or else the one
// derived from the address.
func macFor(x *tx, netID string, a netip.Addr, want string) (string, error) {
	if want == "" {
		return macOf(a), nil
	}
	mac, err := net.ParseMAC(want)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00" {
		return "", errs.New(errs.Invalid, "ConfigEP.MacAddress %.40q: expected the MAC address of one interface, like 02:00:00:00:00:01", want)
	}
	text := mac.String()
	if text == macOf(a) {
		return text, nil
	}
	taken := func(by string) (string, error) {
		return "", errs.New(errs.Conflict, "MAC address already in use: %s of network %s belongs to %s; choose another one, or none", text, netID, by)
	}
	switch {
	case text == routerMAC.String():
		return taken("the router")
	case text == nameServerMAC.String():
		return taken("the name server")
	case derived(text):
		return taken("whoever has the address " + netip.AddrFrom4([4]byte(mac[2:])).String())
	case strings.HasPrefix(text, ofHosts):
		return taken("a host")
	}
	for id := range x.endpoints.where(x.endpoints.ofMAC, macKey(netID, text)) {
		return taken("endpoint " + id)
	}
	return text, nil
}

// derived reports whether a MAC address is one of those derived from addresses. macFor gives
// no others of that form, so nobody has to search for them.
func derived(mac string) bool { return strings.HasPrefix(mac, ofAddresses) }

// macKey names a MAC address of a network.
func macKey(netID, mac string) string { return netID + " " + mac }

// macOf derives a MAC address from an IPv4 address: 02:02 and its four bytes.
func macOf(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf(ofAddresses+"%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}
