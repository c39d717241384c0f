package doctor

import (
	"maps"
	"slices"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// health passes on what agents say of themselves in /readyz.
var health = check{"health", each(func(label string, h agents.Facts) (out []doctorapi.Finding) {
	for _, name := range slices.Sorted(maps.Keys(h.Checks)) {
		if said := h.Checks[name]; said != "ok" {
			out = append(out, doctorapi.Finding{
				Code: "agent-not-ready", Severity: doctorapi.Error, Object: host(label), Text: "check " + name + ": " + said,
				Do: "see journalctl -u netplugin there; containers cannot be attached to this host until it is well",
			})
		}
	}
	if said := h.Notes["audit"]; said != "" {
		out = append(out, doctorapi.Finding{
			Code: "audit-file", Severity: doctorapi.Error, Object: host(label), Text: said,
			Do: "see the disk and the directory of --audit-dir there; what is missing is told in the file when it can be written again",
		})
	}
	return out
})}
