package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/test/eventually"
)

// admin may see everything.
var admin = identity.Identity{Kind: identity.User, Name: "admin", Grants: []identity.Grant{{Role: identity.Admin}}}

// changesOf asks a hub for changes.
func changesOf(t *testing.T, hub *events.Hub, id identity.Identity, query string) (got contivmodel.Changes) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", events.PathChanges+"?"+query, nil)
	hub.ServeChanges(w, r.WithContext(identity.With(r.Context(), id)))
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// brief are changes in a line each: event, object, what it was and what it is.
func brief(all contivmodel.Changes) (lines []string) {
	for _, c := range all.Changes {
		lines = append(lines, fmt.Sprintf("%s %s/%s %s>%s", c.Event, c.Kind, c.Key, c.Before, c.After))
	}
	return lines
}

// until waits for what a hub knows of changes.
func until(t *testing.T, hub *events.Hub, expected ...string) {
	t.Helper()
	eventually.Succeeds(t, "the changes", func() error {
		if got := brief(changesOf(t, hub, admin, "")); !slices.Equal(got, expected) {
			return errors.New(cmp.Diff(expected, got))
		}
		return nil
	})
}

// TestChanges: what has happened is remembered with what was before, also when the store was
// unreachable meanwhile; what was there at the start is no change.
func TestChanges(t *testing.T) {
	store := memory.New()
	put(t, store, 1, "network/blue:a", "network/red:a")
	hub := run(t, store, events.Config{})
	put(t, store, 2, "network/blue:a")
	put(t, store, 2, "network/blue:a")
	put(t, store, 3, "network/red:b", "tenant/red")
	remove(t, store, "network/red:a")
	put(t, store, 4, "nothing/of:ours")
	expected := []string{
		`changed network/blue:a {"v":1}>{"v":2}`, `added network/red:b >{"v":3}`, `added tenant/red >{"v":3}`, `removed network/red:a {"v":1}>`,
	}
	until(t, hub, expected...)
	store.Resync()
	remove(t, store, "network/red:b")
	expected = append(expected, `removed network/red:b {"v":3}>`)
	until(t, hub, expected...)

	jane := identity.Identity{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}
	if got := brief(changesOf(t, hub, jane, "")); !slices.Equal(got, expected[:1]) {
		t.Errorf("jane sees %q", got)
	}
	if got := brief(changesOf(t, hub, admin, "kind=tenant")); !slices.Equal(got, expected[2:3]) {
		t.Errorf("tenants: %q", got)
	}
	newest := changesOf(t, hub, admin, "limit=2")
	if got := brief(newest); !slices.Equal(got, expected[3:]) || !newest.Since.Equal(newest.Changes[0].Time) {
		t.Errorf("the newest two: %q since %s", got, newest.Since)
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if got := changesOf(t, hub, admin, "since="+later); len(got.Changes) != 0 || got.Since.Format(time.RFC3339) != later {
		t.Errorf("of the future: %+v", got)
	}
}

// TestChangesMissed: what happens between a watch that breaks and the next is in the difference.
func TestChangesMissed(t *testing.T) {
	store := memory.New()
	put(t, store, 1, "network/blue:a", "network/blue:b", "network/blue:c")
	hub := run(t, missing{store}, events.Config{})
	put(t, store, 2, "network/blue:a", "network/blue:d")
	remove(t, store, "network/blue:b")
	store.Resync()
	until(t, hub, `changed network/blue:a {"v":1}>{"v":2}`, `added network/blue:d >{"v":2}`, `removed network/blue:b {"v":1}>`)
}

// missing is a store whose watch delivers snapshots only.
type missing struct{ *memory.Store }

func (m missing) Watch(ctx context.Context, prefix string) <-chan objdb.Batch {
	out := make(chan objdb.Batch)
	go func() {
		defer close(out)
		for b := range m.Store.Watch(ctx, prefix) {
			if b.Snapshot {
				out <- b
			}
		}
	}()
	return out
}

// TestChangesBounded: the oldest are forgotten, and the answer says since when it is whole.
func TestChangesBounded(t *testing.T) {
	store := memory.New()
	hub := run(t, store, events.Config{MaxBatches: 3})
	for i := range 10 {
		put(t, store, i, "network/blue:a")
	}
	until(t, hub, `changed network/blue:a {"v":6}>{"v":7}`, `changed network/blue:a {"v":7}>{"v":8}`, `changed network/blue:a {"v":8}>{"v":9}`)
	got := changesOf(t, hub, admin, "")
	if got.Since.After(got.Changes[0].Time) || got.Since.IsZero() {
		t.Errorf("whole since %s, the first is of %s", got.Since, got.Changes[0].Time)
	}
	large := run(t, store, events.Config{MaxBytes: 1})
	put(t, store, 11, "network/blue:a")
	until(t, large)
}

// TestChangesRefused: wrong parameters are refused, and who comes too early waits.
func TestChangesRefused(t *testing.T) {
	hub := run(t, memory.New(), events.Config{})
	for query, expected := range map[string]string{
		"since=yesterday": "since \"yesterday\" is not a time", "limit=0": "expected a number from 1 to 10000", "limit=x": "expected a number",
		"kind=car": "kind \"car\" is none of", "%zz": "query",
	} {
		w := httptest.NewRecorder()
		hub.ServeChanges(w, &http.Request{Method: "GET", URL: &url.URL{RawQuery: query}})
		if w.Code != 500 || !strings.Contains(w.Body.String(), expected) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	events.NewHub(events.Config{}).ServeChanges(w, httptest.NewRequest("GET", events.PathChanges, nil))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("before the store is there: %d", w.Code)
	}
}
