package api

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/objdb/memory"
)

// TestEveryRouteHasARule: whoever adds a route has to say who may use it.
func TestEveryRouteHasARule(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := memory.New()
	lead, err := intenttest.Lead(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	e, err := intent.New(ctx, intent.Config{Log: log, ClusterMode: "test", FwdMode: "routing", Infra: "default"}, store, lead)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		<-e.Done()
	}()
	h := New(Config{Log: log, Members: cluster.New("")}, e)
	rules, variable, seen := authz.New(authz.Config{}), regexp.MustCompile(`\{[a-z]+:[^}]*\}`), 0
	err = h.router.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := route.GetMethods()
		if err != nil {
			return err
		}
		path = variable.ReplaceAllString(strings.TrimSuffix(path, slash), "x")
		for _, m := range methods {
			seen++
			if !rules.Covers(m, path) {
				t.Errorf("%s %s: no rule in netmaster/authz says who may send it", m, path)
			}
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d routes seen: %v", seen, err)
	}
	if rules.Covers("GET", "/api/v1/no-such/") || rules.Covers("PATCH", "/api/v1/networks/x") {
		t.Error("there is a rule for what does not exist")
	}
}
