package api

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/contiv/netplugin/netmaster/doctor"
	"github.com/contiv/netplugin/netmaster/support"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
)

// supportTimeout is how long a bundle may take; clients wait a minute.
const supportTimeout = 50 * time.Second

// support routes the request for a support bundle.
func (h *Handler) support(sources doctor.Config, log func(w io.Writer) error) {
	pages, ok := sources.Agents.(support.Agents)
	if !ok {
		return
	}
	files := support.Config{
		Agents: pages, Store: sources.Store, Cluster: sources.Cluster, Flags: os.Args, Log: log,
		Doctor: func(ctx context.Context) (*doctorapi.Report, error) { return doctor.Run(ctx, sources, nil) },
	}
	h.router.Methods(http.MethodGet).Path(doctorapi.PathSupport[:len(doctorapi.PathSupport)-1] + slash).
		HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size, err := bundleSize(r)
			if err != nil {
				h.fail(w, r, err)
				return
			}
			// Longer than other requests may take.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), supportTimeout)
			defer cancel()
			w.Header().Set("Content-Type", "application/gzip")
			if err := support.Write(ctx, files, w, size); err != nil {
				h.log.WithError(err).Warn("a support bundle was broken off")
			}
		})
}

func bundleSize(r *http.Request) (int, error) {
	text := r.URL.Query().Get(doctorapi.QuerySize)
	if text == "" {
		return doctorapi.DefaultSize, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < doctorapi.LeastSize || n > doctorapi.LargestSize {
		return 0, errs.New(errs.Invalid, "size %.40q: expected %d to %d bytes", text, doctorapi.LeastSize, doctorapi.LargestSize)
	}
	return n, nil
}
