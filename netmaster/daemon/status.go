package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
)

// masters is which netmasters are registered, as of the registry's last change.
type masters struct {
	mu        sync.Mutex
	addresses []string // IP addresses, sorted, each once
}

func (m *masters) watch(ctx context.Context, store objdb.Store, members *cluster.Members) {
	for list := range objdb.WatchServices(ctx, store, "netmaster") {
		members.SawMasters(list)
		addresses := make([]string, 0, len(list))
		for _, i := range list {
			addresses = append(addresses, i.HostAddr)
		}
		slices.Sort(addresses)
		m.mu.Lock()
		m.addresses = slices.Compact(addresses)
		m.mu.Unlock()
	}
}

func (m *masters) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.addresses)
}

func (d *Daemon) serveVersion(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, d.cfg.Version)
}

// info is the body of GET /info.
type info struct {
	State    string   `json:"current-state"` // leader | follower
	LeaderIP string   `json:"leader-ip"`     // ip:port
	LocalIP  string   `json:"local-ip"`
	Masters  []string `json:"netmaster-nodes"`
	Agents   []string `json:"netplugin-nodes"`
}

func (d *Daemon) serveInfo(w http.ResponseWriter, _ *http.Request) {
	v := d.state.view()
	if v.leader == "" {
		http.Error(w, "Error getting master state", http.StatusInternalServerError)
		return
	}
	agents, _ := d.cfg.Members.Agents()
	reply(w, http.StatusOK, info{
		State: v.role(), LeaderIP: v.leader, LocalIP: d.address.Addr().String(),
		Masters: orEmpty(d.masters.list()), Agents: orEmpty(slices.Compact(slices.Sorted(maps.Values(agents)))),
	})
}

func (v view) role() string {
	if v.leading {
		return objdb.RoleLeader
	}
	return objdb.RoleFollower
}

// health is the body of GET /healthz and /readyz.
type health struct {
	Status  string   `json:"status"` // ok | degraded
	Role    string   `json:"role"`   // leader | follower
	Leader  string   `json:"leader"` // ip:port
	Reasons []string `json:"reasons"`
}

// serveHealth asks the store, and says whether this process and what it depends on are
// well: 200, or 503 with reasons.
func (d *Daemon) serveHealth(w http.ResponseWriter, r *http.Request) {
	if store, _ := d.storeState(); store != nil {
		d.checkStore(r.Context(), store)
	}
	d.serveReady(w, r)
}

// serveReady says, from what is known, whether a request to this process would be
// served now: 200, or 503 with reasons.
func (d *Daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	v := d.state.view()
	reasons := []string{}
	if v.stopping {
		reasons = append(reasons, "stopping")
	}
	if _, storeErr := d.storeState(); storeErr != "" {
		reasons = append(reasons, "the store is unavailable: "+storeErr)
	}
	switch {
	case v.waiting != "":
		reasons = append(reasons, v.waiting)
	case v.controller == nil && (v.leader == "" || v.leader == d.cfg.Address):
		reasons = append(reasons, "no netmaster is the leader")
	}
	h := health{Status: "ok", Role: v.role(), Leader: v.leader, Reasons: reasons}
	code := http.StatusOK
	if len(reasons) > 0 {
		h.Status, code = "degraded", http.StatusServiceUnavailable
	}
	reply(w, code, h)
}

// orEmpty makes JSON say [] for what is nil.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has gone
}
