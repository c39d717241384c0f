package hostinit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"syscall"

	"github.com/contiv/netplugin/utils/errs"
)

const maxBody = 1 << 20

// handler is the control interface:
//
//	GET    /daemons                    []Status
//	PUT    /daemons/{name}             Daemon → Status
//	DELETE /daemons/{name}?signal=15   signals, waits for the end → Status
//	GET    /daemons/{name}/exit        waits for the end → Status
//	PUT    /netns/{name}               makes a network namespace → its path
//	DELETE /netns/{name}
//
// A request that waits ends when its client goes away.
func (s *supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			answer, err := f(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			// The status line is out: a client that has gone away cannot be told.
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	handle("GET /daemons", func(*http.Request) (any, error) { return s.list(), nil })
	handle("PUT /daemons/{name}", func(r *http.Request) (any, error) {
		var d Daemon
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			return nil, errs.New(errs.Invalid, "decode daemon %s: %w", r.PathValue("name"), err)
		}
		d.Name = r.PathValue("name")
		return s.start(d)
	})
	handle("DELETE /daemons/{name}", func(r *http.Request) (any, error) {
		signal, err := strconv.Atoi(r.FormValue("signal"))
		if err != nil || signal < 1 || signal > 64 {
			return nil, errs.New(errs.Invalid, "signal %q: expected a number from 1 to 64", r.FormValue("signal"))
		}
		return s.stop(r.Context(), r.PathValue("name"), syscall.Signal(signal))
	})
	handle("GET /daemons/{name}/exit", func(r *http.Request) (any, error) {
		return s.exit(r.Context(), r.PathValue("name"))
	})
	handle("PUT /netns/{name}", func(r *http.Request) (any, error) { return addNetns(r.PathValue("name")) })
	handle("DELETE /netns/{name}", func(r *http.Request) (any, error) {
		return struct{}{}, removeNetns(r.PathValue("name"))
	})
	return mux
}
