package attachment

import (
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/mgmtfn/endpoint"
)

// askFor adds the requested addresses to a spec.
func askFor(spec *endpoint.Spec, addresses []string) error {
	for _, text := range addresses {
		addr, err := netip.ParseAddr(text)
		if prefix, ofPrefix := netip.ParsePrefix(text); err != nil && ofPrefix == nil {
			addr, err = prefix.Addr(), nil
		}
		if err != nil {
			return fmt.Errorf("address %.50q: expected one like 10.1.1.7 or 10.1.1.7/24", text)
		}
		field := &spec.IPv6
		if addr = addr.Unmap(); addr.Is4() {
			field = &spec.IPv4
		}
		if *field != "" {
			return fmt.Errorf("addresses %s and %s: expected at most one of each family", *field, addr)
		}
		*field = addr.String()
	}
	return nil
}
