package doctor

import (
	"fmt"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// switches finds bridges that are not what their agent wants.
var switches = check{"switches", each(func(label string, h agents.Facts) (out []doctorapi.Finding) {
	for _, b := range h.Switch.Bridges {
		out = append(out, judgeBridge(label, b)...)
	}
	for _, text := range h.Switch.Errors {
		out = append(out, doctorapi.Finding{
			Code: "switch-unknown", Severity: doctorapi.Warning, Object: host(label), Text: "the switch could not be examined: " + text,
			Do: "see whether ovs-vswitchd runs there: ovs-appctl version",
		})
	}
	return out
})}

func judgeBridge(label string, b doctorapi.Bridge) (out []doctorapi.Finding) {
	find := func(code string, s doctorapi.Severity, do, format string, args ...any) {
		out = append(out, doctorapi.Finding{Code: code, Severity: s, Object: "bridge " + b.Name + " of " + host(label), Text: fmt.Sprintf(format, args...), Do: do})
	}
	if !b.Connected {
		find("switch-down", doctorapi.Error, "see whether ovs-vswitchd runs there, and its log /var/log/openvswitch/ovs-vswitchd.log",
			"there is no OpenFlow connection to it: %s", b.Error)
	}
	if b.Refused > 0 {
		find("flows-refused", doctorapi.Error, "see journalctl -u netplugin there for the flow and the reason; report it",
			"the switch refuses %d changes of flows", b.Refused)
	}
	if b.Missing > 0 {
		find("flows-missing", doctorapi.Error, "restart netplugin there, which adds them; find out who deletes flows of this bridge",
			"%d flows are missing in the switch: somebody else has deleted them", b.Missing)
	}
	if b.Foreign > 0 {
		find("flows-foreign", doctorapi.Warning, "restart netplugin there, which removes them; find out who adds flows to this bridge",
			"%d flows are in the switch that netplugin has not made", b.Foreign)
	}
	if b.Restarts > 0 {
		find("switch-restarted", doctorapi.Warning, "see /var/log/openvswitch/ovs-vswitchd.log there for why it exited, and keep it; the notice goes with a restart of netplugin",
			"ovs-vswitchd has exited and come back without flows %d times, last at %s", b.Restarts, b.Restarted.UTC().Format(time.RFC3339))
	}
	return out
}
