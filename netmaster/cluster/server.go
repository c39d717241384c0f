package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/httproutes"
)

// Handler is netmaster's end of the control channel, for port 9001.
func (m *Members) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+clusterapi.PathReport, func(w http.ResponseWriter, r *http.Request) {
		var report clusterapi.Report
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, clusterapi.MaxBody))
		if err == nil {
			err = json.Unmarshal(body, &report)
		}
		if err != nil {
			http.Error(w, "report: "+err.Error(), http.StatusBadRequest)
			return
		}
		if id := identity.From(r.Context()); id.Kind == identity.Host && id.Name != report.Host {
			http.Error(w, id.String()+" may not report for host "+strconv.Quote(report.Host), http.StatusForbidden)
			return
		}
		spacing, err := m.Report(report)
		switch {
		case errs.Is(err, errs.Invalid):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// A client that has disconnected is not an error.
		_ = json.NewEncoder(w).Encode(clusterapi.ReportResponse{SpacingMS: int(spacing / time.Millisecond)})
	})
	return httproutes.OrNotFound(mux)
}
