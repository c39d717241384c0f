package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/version"
)

// doctorTimeout bounds what the switch is asked, and is shorter than netmaster waits.
const doctorTimeout = 2 * time.Second

// doctor answers with what this host is like.
func (s Sources) doctor(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), doctorTimeout)
	defer cancel()
	health := s.report()
	h := doctorapi.Host{Host: s.Host, Version: version.Get().Version, Checks: health.Checks, Notes: health.Notes}
	if s.Examine != nil {
		h.Switch = s.Examine(ctx)
	}
	if s.Certificate != nil {
		h.Certificate = s.Certificate()
	}
	h.Now = time.Now()
	reply(w, http.StatusOK, h)
}

// probe sends what netmaster asks for through the tunnels: 400 for what cannot be, 503 while
// the switch does not answer.
func (s Sources) probe(w http.ResponseWriter, r *http.Request) {
	var p doctorapi.Probe
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, doctorapi.MaxProbe)).Decode(&p); err != nil {
		http.Error(w, "probe: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), doctorTimeout)
	defer cancel()
	sent, err := s.Probe(ctx, p)
	switch {
	case err == nil:
		reply(w, http.StatusOK, doctorapi.ProbeSent{Frames: sent})
	case errs.Is(err, errs.Invalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
