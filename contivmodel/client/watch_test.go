package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

// TestWatch plays streams that break, one after the other, and checks what the client
// asks for and takes.
func TestWatch(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than any buffer
	answers := []struct {
		asks   string // the Last-Event-ID
		status int
		text   string
	}{
		{"", 200, "event: reset\nid: 5\ndata: {\"event\":\"reset\",\"revision\":5,\"objects\":[]}\n\n"},
		{"5", 503, "no leader"},
		{"5", 200, ": hello\n\nevent: added\r\ndata:{\"event\":\"added\",\r\ndata:\"objects\":[{\"kind\":\"tenant\",\"key\":\"a\"}]}\r\n\r\n"},
		{"5", 200, "id: 9\n\nevent: added\ndata: {\"event\":\"added\",\"objects\":[{\"kind\":\"tenant\",\"key\":\"" + long + "\"}]}\nid: 10\n"},
		{"9", 200, "data: {\"event\":\"removed\",\"objects\":[{\"kind\":\"tenant\",\"key\":\"b\"}]}\nunknown: field\nid: 11\n\n"},
		{"11", 500, "no more"},
	}
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[n.Add(1)-1]
		if got := r.Header.Get("Last-Event-ID"); got != a.asks || r.URL.String() != "/api/v1/watch?kind=tenant%2Crule" {
			t.Errorf("request for %s after %q, want %q", r.URL, got, a.asks)
		}
		w.WriteHeader(a.status)
		_, _ = fmt.Fprint(w, a.text)
	}))
	defer s.Close()
	c, err := client.New(client.Config{URLs: []string{s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = c.Watch(t.Context(), []string{"tenant", "rule"}, func(n contivmodel.Notice) error {
		text := n.Event
		for _, o := range n.Objects {
			text += " " + o.Key
		}
		got = append(got, text)
		return nil
	})
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Text != "no more" {
		t.Errorf("error %v", err)
	}
	// What ends in the middle of an event is told again, not in part.
	if diff := cmp.Diff([]string{"reset", "added a", "removed b"}, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

// TestWatchEnds is how a Watch ends other than by a refusal.
func TestWatchEnds(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "data: {\"event\":\"reset\",\"objects\":[]}\n\ndata: "+r.URL.Query().Get("kind")+"\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	defer s.Close()
	c, err := client.New(client.Config{URLs: []string{s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(contivmodel.Notice) error { return nil }
	if err := c.Watch(t.Context(), []string{"{"}, nothing); err == nil || !strings.Contains(err.Error(), "not what was expected") {
		t.Errorf("an event that is no JSON: %v", err)
	}
	mine := errors.New("mine")
	if err := c.Watch(t.Context(), nil, func(contivmodel.Notice) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("an error of take: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Watch(ctx, []string{`{"event":"added","objects":[{}]}`}, func(n contivmodel.Notice) error {
		if n.Event == contivmodel.NoticeAdded {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Errorf("the end of ctx: %v", err)
	}
	s.Close()
	if err := c.Watch(t.Context(), nil, nothing); err == nil {
		t.Error("nobody there is no error")
	}
}
