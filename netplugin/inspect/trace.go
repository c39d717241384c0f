package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/httproutes"
)

// traceTimeout is shorter than netmaster waits for an agent.
const traceTimeout = 6 * time.Second

// maxTraceRequest bounds a body, in bytes.
const maxTraceRequest = 16 << 10

// trace answers with the way of a packet: 400 for a request that cannot be, 404 with a
// text of ours for an endpoint that this host does not have, 503 while the switch does
// not answer.
func (s Sources) trace(w http.ResponseWriter, r *http.Request) {
	var req traceapi.HopRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTraceRequest)).Decode(&req); err != nil {
		http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), traceTimeout)
	defer cancel()
	hop, err := s.Trace(ctx, req)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, hop)
}

// refuse answers with an error and the status of its kind.
func refuse(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), httproutes.StatusOf(err))
}
