package daemon

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// servers are the servers of the REST API and of agents' reports.
type servers struct {
	api, rpc *http.Server
	failed   chan error // a listener's failure
}

// startServers serves on all listeners until close; wg waits for them.
func (d *Daemon) startServers(wg *sync.WaitGroup) *servers {
	s := &servers{
		api: &http.Server{
			Handler: d.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute,
			IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(debugWriter{d.log}, "", 0), ConnContext: notePeer,
		},
		rpc: &http.Server{
			Handler: d.identify(d.cfg.Members.Handler()), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
			IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(debugWriter{d.log}, "", 0),
		},
		failed: make(chan error, len(d.cfg.Listeners)+2),
	}
	for _, l := range d.listeners() {
		d.log.WithFields(logrus.Fields{"address": l.Addr().String(), "tls": d.cfg.Security.Mode}).Info("serving the API")
		wg.Go(func() { s.serve(s.api, l) })
	}
	if d.cfg.RPC != nil {
		l := d.listen(d.cfg.RPC, pki.CertificateRequired, pki.UnitAgent, pki.UnitMaster)
		wg.Go(func() { s.serve(s.rpc, l) })
	}
	return s
}

func (s *servers) serve(server *http.Server, l net.Listener) {
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- errs.New(errs.Unavailable, "serve on %s: %w", l.Addr(), err)
	}
}

// close ends the servers. Agents repeat their reports to other netmasters.
func (s *servers) close(d *Daemon) {
	d.within(closeWithin, func(ctx context.Context) {
		if s.api.Shutdown(ctx) != nil {
			s.api.Close()
		}
	})
	s.rpc.Close()
}

// listeners are where the API is served, behind the daemon's security.
func (d *Daemon) listeners() []net.Listener {
	var all []net.Listener
	for _, l := range d.cfg.Listeners {
		all = append(all, d.listen(l, pki.CertificateOptional))
	}
	if s := d.cfg.Security.Socket; s != nil {
		all = append(all, s)
	}
	return all
}

// debugWriter takes what net/http has to say about its clients.
type debugWriter struct{ log logrus.FieldLogger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.WithField("component", "http").Debug(string(p))
	return len(p), nil
}
