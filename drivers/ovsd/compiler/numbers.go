package compiler

// numbers assigns numbers that are derived from their keys where possible, so that they are
// stable. They are kept until they are freed.
type numbers[K comparable] struct {
	by    map[K]uint32
	taken map[uint32]K
}

func newNumbers[K comparable]() numbers[K] {
	return numbers[K]{by: map[K]uint32{}, taken: map[uint32]K{}}
}

// of returns the number of k: the preferred one, or the next free one from lowest to
// highest.
func (n *numbers[K]) of(k K, wish, lowest, highest uint32) uint32 {
	if have, ok := n.by[k]; ok {
		return have
	}
	for _, used := n.taken[wish]; used || wish < lowest || wish > highest; _, used = n.taken[wish] {
		if wish++; wish > highest {
			wish = lowest
		}
	}
	n.by[k], n.taken[wish] = wish, k
	return wish
}

func (n *numbers[K]) free(k K) {
	if have, ok := n.by[k]; ok {
		delete(n.by, k)
		delete(n.taken, have)
	}
}

// LoadVRFs loads the numbers of tenants that are stored.
func (c *Compiler) LoadVRFs(numbers map[string]uint16) {
	for tenant, n := range numbers {
		if n > 0 && c.tenantOfVRF[n] == "" {
			c.VRFs[tenant], c.tenantOfVRF[n] = n, tenant
		}
	}
}

// TenantOfVRF returns the tenant that has a number.
func (c *Compiler) TenantOfVRF(n uint16) (tenant string, ok bool) {
	tenant, ok = c.tenantOfVRF[n]
	return tenant, ok
}

// vrf returns the tenant's number. A tenant without one gets the lowest free number.
func (c *Compiler) vrf(tenant string) uint16 {
	if n, ok := c.VRFs[tenant]; ok {
		return n
	}
	n := uint16(1)
	for c.tenantOfVRF[n] != "" {
		n++
	}
	c.VRFs[tenant], c.tenantOfVRF[n] = n, tenant
	return n
}
