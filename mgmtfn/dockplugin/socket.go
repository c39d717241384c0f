package dockplugin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/contiv/netplugin/mgmtfn/socket"
)

// Serve serves a unix socket until ctx ends, then lets running calls finish and removes the
// socket.
func Serve(ctx context.Context, path string, handler http.Handler) error {
	l, err := socket.Listen(path)
	if err != nil {
		return fmt.Errorf("listen for the Docker Engine: %w", err)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	srv.SetKeepAlivesEnabled(false)
	return socket.Serve(ctx, l, srv, undoTimeout)
}
