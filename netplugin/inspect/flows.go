package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Flows is the host's log of connections.
type Flows interface {
	// Stream emits what a filter selects, and calls flush when there is nothing more for now.
	Stream(ctx context.Context, f flowapi.Filter, emit func(*flowapi.Event) error, flush func() error) error
	Hits() (since time.Time, all []flowapi.Hits)
}

// flowsPatience is how long a reader of flows may take for a part of them.
const flowsPatience = 30 * time.Second

// errNoFlows is the answer without a log.
var errNoFlows = errs.New(errs.NotFound, "this host keeps no flow log: it was started with --flow-log off")

// flows streams records as JSON lines.
func (s Sources) flows(w http.ResponseWriter, r *http.Request) {
	f, err := flowapi.ParseFilter(r.URL.Query())
	if err == nil && s.Flows == nil {
		err = errNoFlows
	}
	if err != nil {
		refuse(w, err)
		return
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // only tests' writers have none
	more := func() error {
		_ = c.SetWriteDeadline(time.Now().Add(flowsPatience))
		return nil
	}
	_ = more()
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, began := json.NewEncoder(w), false
	emit := func(e *flowapi.Event) error {
		began = true
		return enc.Encode(e)
	}
	err = s.Flows.Stream(r.Context(), f, emit, func() error {
		_ = more()
		return c.Flush()
	})
	if err != nil && !began {
		refuse(w, err)
	}
}

// hits tells how often each rule has decided.
func (s Sources) hits(w http.ResponseWriter, _ *http.Request) {
	if s.Flows == nil {
		refuse(w, errNoFlows)
		return
	}
	since, all := s.Flows.Hits()
	w.Header().Set(flowapi.HeaderSince, since.Format(time.RFC3339))
	reply(w, http.StatusOK, all)
}
