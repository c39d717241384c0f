package cluster

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/httproutes"
)

// Answers are what the agent does for netmasters.
type Answers struct {
	// Announce announces the endpoints of a group (0: of all) in the underlay and
	// returns how many those are.
	Announce func(ctx context.Context, group int) (int, error)
	Status   func() clusterapi.Report
}

// Handler is the agent's end of the control channel, for ports 9002 and 9003.
func Handler(a Answers) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+clusterapi.PathAnnounce, func(w http.ResponseWriter, r *http.Request) {
		var req clusterapi.AnnounceRequest
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, clusterapi.MaxBody))
		if err == nil {
			err = json.Unmarshal(body, &req)
		}
		if err == nil && (req.Group < 0 || req.Group > math.MaxUint16) {
			err = errs.New(errs.Invalid, "invalid group number %d", req.Group)
		}
		if err != nil {
			http.Error(w, "announce: "+err.Error(), http.StatusBadRequest)
			return
		}
		n, err := a.Announce(r.Context(), req.Group)
		if err != nil {
			http.Error(w, "announce: "+err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, clusterapi.AnnounceResponse{Endpoints: n})
	})
	mux.HandleFunc("GET "+clusterapi.PathStatus, func(w http.ResponseWriter, _ *http.Request) { answer(w, a.Status()) })
	return httproutes.OrNotFound(mux)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is nobody's error
}
