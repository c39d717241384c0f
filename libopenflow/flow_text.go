package libopenflow

// defaultPriority is the priority that ovs-ofctl does not print.
const defaultPriority = 32768

// flowFlagNames are the names of the flow flags, lowest bit first.
var flowFlagNames = [...]string{"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"}

// String returns the flow as "ovs-ofctl -O OpenFlow13 --no-stats dump-flows" prints
// it, without the leading blank: the cookie, table and timeouts only if not 0, the
// priority only if not 32768.
func (f Flow) String() string { return string(f.AppendText(make([]byte, 0, 160))) }

// AppendText appends the text of String to b.
func (f Flow) AppendText(b []byte) []byte {
	if f.Cookie != 0 {
		b = append(b, "cookie="...)
		b = append(appendHex(b, f.Cookie), ", "...)
	}
	if f.Table != 0 {
		b = append(b, "table="...)
		b = append(appendDec(b, uint64(f.Table)), ", "...)
	}
	if f.IdleTimeout != 0 {
		b = append(b, "idle_timeout="...)
		b = append(appendDec(b, uint64(f.IdleTimeout)), ", "...)
	}
	if f.HardTimeout != 0 {
		b = append(b, "hard_timeout="...)
		b = append(appendDec(b, uint64(f.HardTimeout)), ", "...)
	}
	for i, n := range flowFlagNames {
		if f.Flags>>i&1 == 1 {
			b = append(append(b, n...), ' ')
		}
	}
	b = f.Key().appendMatch(b)
	return f.Instructions.appendText(append(b, "actions="...))
}

// appendMatch writes priority and match, followed by a blank if there is anything.
func (k FlowKey) appendMatch(b []byte) []byte {
	if k.Priority != defaultPriority {
		b = append(b, "priority="...)
		b = appendDec(b, uint64(k.Priority))
		if k.Match == "" {
			return append(b, ' ')
		}
		b = append(b, ',')
	}
	if k.Match == "" {
		return b
	}
	return append(k.Match.appendText(b), ' ')
}

// String returns the key in the syntax of ovs-ofctl: "table=2, priority=100,ip".
func (k FlowKey) String() string {
	b := append(make([]byte, 0, 80), "table="...)
	b = append(appendDec(b, uint64(k.Table)), ", "...)
	b = k.appendMatch(b)
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == ',') {
		b = b[:len(b)-1]
	}
	return string(b)
}
