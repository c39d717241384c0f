package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// waiting says on the port of the REST API why this host has no certificate yet, while it
// joins. Nothing else is served there meanwhile.
type waiting struct {
	mu  sync.Mutex
	why error
}

func (w *waiting) note(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = why
}

func (w *waiting) check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		return errs.New(errs.Unavailable, "this host is joining the cluster")
	}
	return w.why
}

// during serves health until join has returned.
func (w *waiting) during(ctx context.Context, host, address string, mode tlsport.Mode, join func(context.Context) error) error {
	secure, err := withoutCertificate(host, mode)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	health := inspect.Guard(host, inspect.Handler(inspect.Sources{
		Checks: map[string]func() error{"certificate": w.check}, Metrics: prometheus.NewRegistry(),
	}))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return inspect.Serve(serving, address, secure, health) })
	g.Go(func() error {
		defer stop()
		return join(ctx)
	})
	return g.Wait()
}

// withoutCertificate puts a listener behind TLS that nobody can verify: probes do not.
func withoutCertificate(host string, mode tlsport.Mode) (func(net.Listener) net.Listener, error) {
	throwaway, err := pki.NewAuthority("not joined yet", time.Now())
	if err != nil {
		return nil, err
	}
	cert, key, err := throwaway.Issue(pki.Subject{Name: host, Unit: pki.UnitAgent}, time.Now())
	if err != nil {
		return nil, err
	}
	creds := pki.NewCredentials()
	if err := creds.SetPair(cert, key); err != nil {
		return nil, err
	}
	return func(l net.Listener) net.Listener {
		return tlsport.Listen(l, tlsport.Config{Mode: mode, TLS: pki.ServerConfig(creds, pki.CertificateOptional)})
	}, nil
}
