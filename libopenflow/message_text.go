package libopenflow

// The texts of the commands of mods, by number.
var (
	flowCommandNames  = [...]string{"add", "modify", "modify_strict", "delete", "delete_strict"}
	groupCommandNames = [...]string{"add", "modify", "delete"}
)

func commandName(names []string, c uint64) string {
	if c < uint64(len(names)) {
		return names[c]
	}
	return "command_" + utoa(c)
}

// String returns the command and the flow: "flow add table=2, priority=100,ip
// actions=drop". A deletion shows no actions.
func (m *FlowMod) String() string {
	s := "flow " + commandName(flowCommandNames[:], uint64(m.Command)) + " "
	switch m.Command {
	case FlowDelete:
		s += "table=" + utoa(uint64(m.Flow.Table))
		if m.CookieMask != 0 {
			s += ", cookie=" + string(appendHex(nil, m.Flow.Cookie)) + "/" + string(appendHex(nil, m.CookieMask))
		}
		if m.Flow.Match != "" {
			s += ", " + m.Flow.Match.String()
		}
		return s
	case FlowDeleteStrict:
		return s + m.Flow.Key().String()
	}
	return s + m.Flow.String()
}

// String returns the command and the group: "group add group_id=7,type=all,bucket=…".
func (m *GroupMod) String() string {
	s := "group " + commandName(groupCommandNames[:], uint64(m.Command)) + " "
	switch {
	case m.Command != GroupDelete:
		return s + m.Group.String()
	case m.Group.ID == GroupAll:
		return s + "all"
	}
	return s + "group_id=" + utoa(uint64(m.Group.ID))
}

// String returns the command and the meter: "meter add meter=1,kbps,bands=…".
func (m *MeterMod) String() string {
	s := "meter " + commandName(groupCommandNames[:], uint64(m.Command)) + " "
	switch {
	case m.Command != MeterDelete:
		return s + m.Meter.String()
	case m.Meter.ID == MeterAll:
		return s + "all"
	}
	return s + "meter=" + utoa(uint64(m.Meter.ID))
}

// String returns the ports, the actions and the size of the packet.
func (m *PacketOut) String() string {
	return "packet out in_port=" + string(appendPort(nil, m.InPort)) + " actions=" + m.Actions.String() +
		" of " + utoa(uint64(len(m.Data))) + " bytes"
}

// Text returns what a message is, for errors and logs: the text of a mod, the name of
// the type of any other.
func Text(m Message) string {
	if s, ok := m.(interface{ String() string }); ok {
		return s.String()
	}
	if m == nil {
		return "no message"
	}
	return m.Type().String()
}
