// Package apitest runs a leading netmaster's API over a given store, for tests.
package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/httproutes"
)

// Config is what tests start a netmaster with unless they say otherwise.
func Config(log logrus.FieldLogger) daemon.LeaderConfig {
	return daemon.LeaderConfig{Log: log, ClusterMode: "test", FwdMode: "routing", Infra: "default"}
}

// Start leads over store and serves the API on a loopback address until the test
// ends. It returns the base URL.
func Start(t testing.TB, store objdb.Store, cfg daemon.LeaderConfig) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lead, err := intenttest.Lead(ctx, store)
	if err != nil {
		t.Fatalf("take the lock: %v", err)
	}
	c, err := daemon.NewLeader(cfg)(ctx, store, lead)
	if err != nil {
		t.Fatalf("start the controller: %v", err)
	}
	hub, watched := events.NewHub(events.Config{}), make(chan struct{})
	go func() {
		defer close(watched)
		hub.Run(ctx, store)
	}()
	<-hub.Ready()
	changes := http.NewServeMux()
	changes.HandleFunc("GET /", hub.ServeChanges)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimSuffix(r.URL.Path, "/") {
		case "/version":
			_, _ = w.Write([]byte(`{"GitCommit":"abc1234","Version":"1.2.0","BuildTime":"04-16-2019.09-31-33.UTC"}` + "\n"))
		case events.Path:
			hub.ServeHTTP(w, r)
		case events.PathChanges:
			httproutes.OrNotFound(changes).ServeHTTP(w, r)
		default:
			c.ServeHTTP(w, r)
		}
	})
	s := httptest.NewServer(identify(authz.Gate(authz.New(authz.Config{Swarm: cfg.ClusterMode == "swarm-mode"}), serve)))
	t.Cleanup(func() {
		cancel()
		c.Wait()
		<-watched
		s.Close()
	})
	return s.URL
}

// identify believes a request's identity.Header; without one, everything is allowed.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := identity.Forwarded(r.Header)
		if err != nil {
			id = identity.Identity{Kind: identity.Anonymous, Grants: []identity.Grant{{Role: identity.Admin}}}
		}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	})
}

// Log returns a logger that writes to the test's output.
func Log(t testing.TB) logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(t.Output())
	return l
}
