package doctor

import (
	"fmt"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// Clocks that differ by clockApart spoil the order of logs and flows of several hosts;
// by clockFar, certificates and tokens are refused.
const (
	clockApart = time.Second
	clockFar   = 30 * time.Second
)

// clocks compares the clock of each host with that of this netmaster. How long the answer was
// on its way is not held against a host.
var clocks = check{"clocks", each(func(label string, h agents.Facts) []doctorapi.Finding {
	if h.Now.IsZero() {
		return nil // of a version that does not tell
	}
	apart := max(h.Now.Sub(h.Answered), h.Asked.Sub(h.Now), 0)
	if apart < clockApart {
		return nil
	}
	way, severity := "ahead of", doctorapi.Warning
	if h.Now.Before(h.Asked) {
		way = "behind"
	}
	if apart >= clockFar {
		severity = doctorapi.Error
	}
	return []doctorapi.Finding{{
		Code: "clock-apart", Severity: severity, Object: host(label),
		Text: fmt.Sprintf("its clock is %v %s this netmaster's", apart.Round(100*time.Millisecond), way),
		Do:   "keep the clocks of all hosts with NTP: timedatectl set-ntp true",
	}}
})}
