package dockplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// Serve serves a unix socket until ctx ends, then lets calls that run finish and removes
// the socket.
func Serve(ctx context.Context, socket string, handler http.Handler) error {
	l, err := listen(socket)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	srv.SetKeepAlivesEnabled(false)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", socket, err)
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), undoTimeout)
		defer cancel()
		return srv.Shutdown(grace)
	})
	return g.Wait()
}

// listen makes the socket, accessible to root alone, in place of a stale one. Closing
// the listener removes it.
func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("directory of the plugin's socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the stale plugin socket: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the Docker Engine: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
