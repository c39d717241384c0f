package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// The kernel's datapath caches what a neighbor discovery message says only along with its
// exact type and code (odp_flow_key_from_flow in Open vSwitch). A decision about a target or
// an option that is made without the code would be cached for every message of the kind, and
// let a container send messages about others for up to a second after one of its own.

// exactND adds the code to what matches the insides of a message. It is always 0 (RFC 4861
// section 4).
func (p *Pipeline) exactND(m of.Match) of.Match {
	if !p.set.Kernel {
		return m
	}
	for _, f := range []of.Field{of.FieldNDTarget, of.FieldNDSLL, of.FieldNDTLL} {
		if _, ok := m.Get(f); ok {
			return m.With(of.FieldICMPv6Code.Is(0))
		}
	}
	return m
}

// exactSpoofedND are the rows that refuse what the others have looked into, above those that
// refuse messages of any code: what is refused must not be cached for every message, either.
func exactSpoofedND(p *Pipeline) []row {
	if !p.set.Kernel {
		return nil
	}
	var rows []row
	for _, typ := range []uint8{icmpv6NeighborSolicit, icmpv6NeighborAdvert} {
		m := of.NewMatch().ICMPv6(typ).With(of.FieldICMPv6Code.Is(0))
		rows = append(rows, row{tableSource, prioGeneral + 1, m, p.deny(DeniedBySource)}, row{tableSourceND, prioGeneral + 1, m, p.deny(DeniedBySource)})
	}
	return rows
}
