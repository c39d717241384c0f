package k8spolicy

import (
	"fmt"
	"net/netip"

	"go4.org/netipx"
)

// subtract returns disjoint prefixes that cover p without what except covers; never nil.
func subtract(p netip.Prefix, except []netip.Prefix) ([]netip.Prefix, error) {
	var left netipx.IPSetBuilder
	left.AddPrefix(p)
	for _, e := range except {
		left.RemovePrefix(e)
	}
	set, err := left.IPSet()
	if err != nil {
		return nil, fmt.Errorf("%s except %v: %w", p, except, err)
	}
	return append([]netip.Prefix{}, set.Prefixes()...), nil
}
