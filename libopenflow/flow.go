package libopenflow

// Flow is one row of a flow table as a comparable value.
type Flow struct {
	Table        uint8
	Priority     uint16
	Cookie       uint64
	IdleTimeout  uint16 // s without a packet after which the flow goes; 0 never
	HardTimeout  uint16 // s after which the flow goes; 0 never
	Flags        uint16 // FlowSendRemoved, …
	Match        Match
	Instructions Instructions
}

// FlowKey names a flow in a switch: there is at most one flow per key.
type FlowKey struct {
	Table    uint8
	Priority uint16
	Match    Match
}

// Key returns the flow's key.
func (f Flow) Key() FlowKey { return FlowKey{f.Table, f.Priority, f.Match} }
