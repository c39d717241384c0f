package libopenflow

// groupTypeNames are the names of ovs-ofctl.
var groupTypeNames = [...]string{"all", "select", "indirect", "ff"}

// String returns the name that ovs-ofctl uses.
func (t GroupType) String() string {
	if int(t) < len(groupTypeNames) {
		return groupTypeNames[t]
	}
	return "type_" + utoa(uint64(t))
}

// String returns the group as "ovs-ofctl -O OpenFlow13 dump-groups" prints it.
func (g Group) String() string {
	b := appendDec(append(make([]byte, 0, 160), "group_id="...), uint64(g.ID))
	b = append(append(b, ",type="...), g.Type.String()...)
	for k := range g.Buckets.All() {
		b = append(b, ",bucket="...)
		// The switch shows a weight only where it has a meaning.
		if g.Type == GroupTypeSelect && k.Weight != 1 {
			b = append(appendDec(append(b, "weight:"...), uint64(k.Weight)), ',')
		}
		if k.WatchPort != PortAny {
			b = append(appendPort(append(b, "watch_port:"...), k.WatchPort), ',')
		}
		if k.WatchGroup != GroupAny {
			b = append(appendDec(append(b, "watch_group:"...), uint64(k.WatchGroup)), ',')
		}
		b = k.Actions.appendText(append(b, "actions="...))
	}
	return string(b)
}

// String returns the meter in the syntax of "ovs-ofctl add-meter".
func (m Meter) String() string {
	b := append(appendDec(append(make([]byte, 0, 80), "meter="...), uint64(m.ID)), ',')
	for i, n := range [...]string{"kbps,", "pktps,", "burst,", "stats,"} {
		if m.Flags>>i&1 == 1 {
			b = append(b, n...)
		}
	}
	b = append(b, "bands="...)
	first := true
	for d := range m.Bands.All() {
		if !first {
			b = append(b, ',')
		}
		first = false
		switch d.Type {
		case BandDrop:
			b = append(b, "type=drop"...)
		case BandDSCP:
			b = append(b, "type=dscp_remark"...)
		default:
			b = appendDec(append(b, "type="...), uint64(d.Type))
		}
		b = appendDec(append(b, ",rate="...), uint64(d.Rate))
		if m.Flags&MeterBurst != 0 {
			b = appendDec(append(b, ",burst_size="...), uint64(d.Burst))
		}
		if d.Type == BandDSCP {
			b = appendDec(append(b, ",prec_level="...), uint64(d.Precedence))
		}
	}
	return string(b)
}
