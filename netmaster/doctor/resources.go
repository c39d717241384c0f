package doctor

import (
	"fmt"
	"slices"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// A table or disk of which this part is used is nearly full, in percent.
const (
	nearlyFull = 80
	full       = 95
)

// limits are the reasons of drops at a limit, with what has it.
var limits = map[string]string{
	"rate": "the bandwidth of a group", "dns-rate": "the rate of DNS queries of a container (--dns-rate)",
	"connection-rate": "the rate of new connections of a container (--connection-rate)", "reject-rate": "the rate of rejects",
}

// resources finds tables and disks that are nearly full, and packets that limits cost now.
var resources = check{"resources", func(f *Facts) (out []doctorapi.Finding) {
	for _, label := range f.labels() {
		h := f.Hosts[label]
		if c := h.Switch.Connections; c.Limit > 0 && c.Tracked*100 >= c.Limit*nearlyFull {
			out = append(out, doctorapi.Finding{
				Code: "connections-full", Severity: fullness(c.Tracked, c.Limit), Object: host(label), Text: fmt.Sprintf("%d of at most %d connections are tracked; further ones are dropped", c.Tracked, c.Limit),
				Do: "find out who opens so many: netctl flows; raise the limit: ovs-appctl dpctl/ct-set-maxconns",
			})
		}
		out = append(out, judgeDrops(label, f.Before[label], h)...)
	}
	if d := f.Disk; d.Total > 0 && d.Used*100 >= d.Total*nearlyFull {
		out = append(out, doctorapi.Finding{
			Code: "disk-full", Severity: fullness(d.Used, d.Total), Object: "store", Text: fmt.Sprintf("the disk of its data on the leader has %d MiB left", (d.Total-d.Used)>>20),
			Do: "free space on that disk; when it is full, nothing can be changed",
		})
	}
	return out
}}

func fullness(used, total uint64) doctorapi.Severity {
	if used*100 >= total*full {
		return doctorapi.Error
	}
	return doctorapi.Warning
}

// judgeDrops compares what limits have cost in two readings.
func judgeDrops(label string, before, now agents.Facts) (out []doctorapi.Finding) {
	for _, b := range now.Switch.Bridges {
		i := slices.IndexFunc(before.Switch.Bridges, func(old doctorapi.Bridge) bool { return old.Name == b.Name })
		if i < 0 {
			continue
		}
		for reason, limit := range limits {
			if old := before.Switch.Bridges[i].Drops[reason]; b.Drops[reason] > old {
				out = append(out, doctorapi.Finding{
					Code: "packets-limited", Severity: doctorapi.Warning, Object: host(label),
					Text: fmt.Sprintf("%d packets were dropped while it was asked, above %s", b.Drops[reason]-old, limit), Do: "find out who sends them: netctl flows; raise the limit if it is too low",
				})
			}
		}
	}
	return out
}
