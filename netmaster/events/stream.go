package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// stream is one client.
type stream struct {
	hub   *Hub
	store objdb.Store
	kinds []string          // nil: all
	who   string            // whose streams it counts among
	asks  identity.Identity // who is shown no more than it may see

	resume bool  // go on after since
	since  int64 // a revision

	w     http.ResponseWriter
	rc    *http.ResponseController
	begun bool // the answer has begun

	place int   // in the history
	rev   int64 // everything up to this revision has been told
	id    int64 // the last id sent
}

// run tells the client everything until it goes. An error before begun is set is to be
// answered with.
func (s *stream) run(ctx context.Context) error {
	// The server's limits are made for requests that end.
	_ = s.rc.SetReadDeadline(time.Time{})
	known := false
	if s.resume {
		s.place, known = s.hub.history.after(s.since)
		s.rev, s.id = s.since, s.since
	}
	if !known {
		if err := s.reset(ctx); err != nil {
			return err
		}
	} else if err := s.write([]byte(": going on\n\n")); err != nil {
		return err
	}
	beat := time.NewTicker(s.hub.cfg.Heartbeat)
	defer beat.Stop()
	for {
		r := s.hub.history.read(s.place)
		switch {
		case r.closed:
			return nil
		case r.lost:
			if err := s.reset(ctx); err != nil {
				return err
			}
			continue
		case len(r.batches) > 0:
			if err := s.tell(r); err != nil {
				return err
			}
			continue
		}
		select {
		case <-r.more:
		case <-beat.C:
			if err := s.beat(r.rev); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reset tells everything there is, read from the store itself: what this process has
// heard may be older than what the client knows from another netmaster. Its id is what
// has been heard, so that the history knows the place; who comes back with it may be
// told once more what the reset had already.
func (s *stream) reset(ctx context.Context) error {
	place, heard, _ := s.hub.history.end()
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	kvs, rev, err := s.store.List(ctx, state.ModelRoot)
	if err != nil {
		return errs.New(errs.Unavailable, "read the objects: %w", err)
	}
	n := contivmodel.Notice{Event: contivmodel.NoticeReset, Revision: heard, Objects: []contivmodel.Object{}}
	for _, kv := range kvs {
		if obj, ok := s.hub.history.objectOf(kv, false); ok && s.wants(obj) {
			n.Objects = append(n.Objects, obj)
		}
	}
	var text bytes.Buffer
	if err := format(&text, n); err != nil {
		return err
	}
	s.place, s.rev, s.id = place, rev, heard
	return s.write(text.Bytes())
}

// tell tells what was read from the history, as far as the client does not know it.
func (s *stream) tell(r read) error {
	s.place = r.next
	var text bytes.Buffer
	for _, b := range r.batches {
		if b.rev <= s.rev {
			continue
		}
		s.rev = b.rev
		var told []contivmodel.Notice
		for _, n := range b.notices {
			if s.wants(n.Objects[0]) {
				told = append(told, n)
			}
		}
		for i, n := range told {
			if i == len(told)-1 {
				n.Revision, s.id = b.rev, b.rev
			}
			if err := format(&text, n); err != nil {
				return err
			}
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return s.write(text.Bytes())
}

// beat shows that the stream lives, and from where to go on although nothing has
// happened that the client wants to know.
func (s *stream) beat(rev int64) error {
	if rev <= s.id {
		return s.write([]byte(":\n\n"))
	}
	s.id = rev
	return s.write(fmt.Appendf(nil, "id: %d\n\n", rev))
}

// wants reports whether the client is told of an object.
func (s *stream) wants(obj contivmodel.Object) bool {
	return (s.kinds == nil || slices.Contains(s.kinds, obj.Kind)) && authz.Visible(s.asks, obj.Kind, obj.Key)
}

// write sends text to the client, or fails when it takes too long to read it.
func (s *stream) write(text []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.Header().Set("X-Accel-Buffering", "no") // proxies of the nginx kind must not wait for more
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.hub.cfg.Patience)) // a test's recorder has none
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.rc.Flush()
}

// format appends a notice in the form of the event stream.
func format(to *bytes.Buffer, n contivmodel.Notice) error {
	data, err := json.Marshal(n) // on one line, whatever the objects look like
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	fmt.Fprintf(to, "event: %s\n", n.Event)
	if n.Revision != 0 {
		fmt.Fprintf(to, "id: %d\n", n.Revision)
	}
	fmt.Fprintf(to, "data: %s\n\n", data)
	return nil
}
