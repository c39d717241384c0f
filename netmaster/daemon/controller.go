package daemon

import (
	"context"
	"net/http"

	"github.com/contiv/netplugin/objdb"
)

// Controller is what a leader runs: everything that reads and writes intent. It
// serves /api/v1/…, /plugin/… and /debug/… while its netmaster leads. A Controller
// must not answer after the context of its NewController has ended: whatever it
// still tries to write then fails at the fence. If it has a method Collect as a
// prometheus.Collector does, that is used while it serves.
type Controller interface {
	http.Handler
	// Wait returns when everything that the Controller has started has ended, soon after
	// the context of its NewController.
	Wait()
}

// NewController is called on each acquisition of leadership. It loads everything
// from the store at one revision, creates what must exist (the global object, the
// tenant default) in transactions that compare lead.Fence(), and returns when it can
// serve. ctx ends with the term; goroutines the Controller starts end with it.
//
// An error gives the leadership back: the daemon resigns, waits and campaigns again.
type NewController func(ctx context.Context, store objdb.Store, lead objdb.Leadership) (Controller, error)
