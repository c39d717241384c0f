package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// cluster routes the requests about hosts.
func (h *Handler) cluster(e *intent.Engine, members *cluster.Members, known Hosts) {
	h.router.Methods(http.MethodGet).Path(clusterapi.PathCluster[:len(clusterapi.PathCluster)-1] + slash).
		HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			state, err := describeCluster(r.Context(), e, members, known)
			h.answer(w, r, state, err)
		})
	h.router.Methods(http.MethodGet).Path(clusterapi.PathApplied[:len(clusterapi.PathApplied)-1] + slash).
		HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			revision, settings, wait, err := appliedQuery(r)
			if err != nil {
				h.fail(w, r, err)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), wait)
			defer cancel()
			applied := members.Applied(ctx, revision, settings)
			if scope(r) != nil {
				for i := range applied.Missing { // they may name what belongs to other tenants
					applied.Missing[i].Reasons = []string{}
				}
			}
			h.answer(w, r, applied, nil)
		})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		h.router.Methods(method).Path(clusterapi.PathGarbage[:len(clusterapi.PathGarbage)-1] + slash).
			HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				gone, err := collectGarbage(r, known, method == http.MethodGet)
				h.answer(w, r, gone, err)
			})
	}
	h.router.Methods(http.MethodGet).Path("/debug/ofnet" + slash).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state, err := describeDistribution(r.Context(), e, members)
		h.answer(w, r, state, err)
	})
}

// appliedQuery reads what PathApplied is asked.
func appliedQuery(r *http.Request) (revision, settings int64, wait time.Duration, err error) {
	q := r.URL.Query()
	for _, number := range []struct {
		name string
		into *int64
	}{{clusterapi.QueryRevision, &revision}, {clusterapi.QuerySettings, &settings}} {
		text := q.Get(number.name)
		if text == "" {
			continue
		}
		if *number.into, err = strconv.ParseInt(text, 10, 64); err != nil || *number.into < 0 {
			return 0, 0, 0, errs.New(errs.Invalid, "query %s=%.40q: expected a store revision", number.name, text)
		}
	}
	if text := q.Get(clusterapi.QueryWait); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			return 0, 0, 0, errs.New(errs.Invalid, "query %s=%.40q: expected a duration like 5s", clusterapi.QueryWait, text)
		}
	}
	return revision, settings, min(wait, clusterapi.MaxWait), nil
}

// collectGarbage removes the orphans of hosts that are down, or only lists them.
func collectGarbage(r *http.Request, known Hosts, dryRun bool) ([]clusterapi.GoneHost, error) {
	q, older := r.URL.Query(), clusterapi.DefaultOlder
	if text := q.Get(clusterapi.QueryOlder); text != "" {
		var err error
		if older, err = time.ParseDuration(text); err != nil || older < 0 {
			return nil, errs.New(errs.Invalid, "query %s=%.40q: expected a duration like 10m", clusterapi.QueryOlder, text)
		}
	}
	return known.CollectGarbage(r.Context(), q.Get(clusterapi.QueryHost), older, dryRun)
}

// describeCluster joins what the agents report with what the store says of their hosts.
func describeCluster(ctx context.Context, e *intent.Engine, members *cluster.Members, known Hosts) (*clusterapi.Cluster, error) {
	hosts, err := known.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	c := &clusterapi.Cluster{}
	c.Revision, c.Settings = e.Written()
	c.Hosts = cluster.Join(members.Hosts(), hosts, c.Revision, c.Settings)
	return c, nil
}
