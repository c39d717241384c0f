package doctor

import (
	"fmt"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
)

// hosts finds hosts that are down, or behind in applying what netmaster has written.
var hosts = check{"hosts", func(f *Facts) (out []doctorapi.Finding) {
	for _, h := range f.Cluster.Hosts {
		out = append(out, judgeHost(f, h)...)
	}
	return out
}}

func judgeHost(f *Facts, h clusterapi.Host) (out []doctorapi.Finding) {
	find := func(code string, s doctorapi.Severity, do, format string, args ...any) {
		out = append(out, doctorapi.Finding{Code: code, Severity: s, Object: host(h.Host), Text: fmt.Sprintf(format, args...), Do: do})
	}
	switch err := f.Away[h.Host]; {
	case h.State == clusterapi.Gone && h.CleanUp != "":
		find("host-gone", doctorapi.Error, "start netplugin on it, or remove it: netctl endpoint gc --host "+h.Host,
			"it is not registered since %s; its %d endpoints are removed at %s", h.Gone, h.Endpoints, h.CleanUp)
	case h.State == clusterapi.Gone:
		find("host-gone", doctorapi.Error, "start netplugin on it, or remove it: netctl endpoint gc --host "+h.Host,
			"it is not registered; it has %d endpoints", h.Endpoints)
	case err != nil:
		find("host-away", doctorapi.Error, "see journalctl -u netplugin there, and whether this netmaster reaches its port 9090",
			"its agent does not answer, so that nothing of the host was checked: %v", err)
	case h.State == clusterapi.Silent:
		find("host-silent", doctorapi.Error, "see journalctl -u netplugin there, and whether it reaches port 9001 of this netmaster",
			"its agent does not report to the leader")
	}
	if h.State != clusterapi.Gone && h.Lag > 0 {
		find("host-behind", doctorapi.Warning, "run netctl doctor again; if it stays behind, see journalctl -u netplugin there",
			"it has applied revision %d and settings %d of %d and %d: %d behind", h.Revision, h.Settings, f.Cluster.Revision, f.Cluster.Settings, h.Lag)
	}
	return out
}
