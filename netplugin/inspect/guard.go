package inspect

import (
	"net/http"
	"slices"

	"github.com/contiv/netplugin/utils/pki"
)

// open are the paths that need no certificate: what probes ask.
var open = []string{"/healthz", "/readyz"}

// Guard passes on what the owner of a certificate may ask of the agent of a host: netmasters,
// and who has the host's own certificate (its root user), everything; collectors of metrics,
// metrics; probes, whether it is healthy.
func Guard(host string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayAsk(host, r) {
			http.Error(w, "access denied: expected a certificate of a netmaster, or the one of host "+host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func mayAsk(host string, r *http.Request) bool {
	if slices.Contains(open, r.URL.Path) && r.Method == http.MethodGet {
		return true
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	peer := pki.PeerOf(r.TLS.PeerCertificates[0]) // verified in the handshake
	switch peer.Unit {
	case pki.UnitMaster:
		return true
	case pki.UnitAgent:
		return peer.Name == host
	case pki.UnitMonitor:
		return r.Method == http.MethodGet && r.URL.Path == "/metrics"
	}
	return false
}
