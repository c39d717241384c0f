package api

import (
	"context"
	"net/http"

	"github.com/contiv/netplugin/netmaster/doctor"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
)

// doctor routes the question what is wrong with the cluster.
func (h *Handler) doctor(e *intent.Engine, cfg Config) {
	sources := cfg.Doctor
	sources.Cluster = func(ctx context.Context) (*clusterapi.Cluster, error) {
		return describeCluster(ctx, e, cfg.Members, cfg.Hosts)
	}
	sources.Applied, sources.EndpointsOf, sources.Masters = cfg.Members.Applied, e.EndpointsOf, cfg.Members.Masters
	h.support(sources, cfg.LastLines)
	h.router.Methods(http.MethodGet).Path(doctorapi.PathMaster[:len(doctorapi.PathMaster)-1] + slash).
		HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			report, err := doctor.Run(r.Context(), sources, r.URL.Query()[doctorapi.QueryHost])
			h.answer(w, r, report, err)
		})
}
