package flows

import (
	"context"
	"slices"

	"github.com/contiv/netplugin/state/flowapi"
)

// queue is what a host says, with its next record in the hand.
type queue struct {
	host string
	in   <-chan said
	head *flowapi.Record
	late bool // it has not told everything in time
}

// fill takes what a host says until its next record is in the hand. There is none when it has
// told everything, or says nothing until the deadline. What is no record goes to aside.
func (q *queue) fill(ctx context.Context, deadline <-chan struct{}, aside func(flowapi.Event) error) error {
	for q.head == nil {
		select {
		case s, more := <-q.in:
			if !more || s.event.Heartbeat != nil && s.event.Heartbeat.Live || s.event.Missing != nil {
				return aside(s.event)
			}
			if q.head = s.event.Record; q.head == nil {
				if err := aside(s.event); err != nil {
					return err
				}
			}
		case <-deadline:
			q.late = true
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tail keeps the newest records.
type tail struct {
	most  int
	order []string // IDs
	byID  map[string]flowapi.Record
}

func newTail(most int) *tail { return &tail{most: most, byID: map[string]flowapi.Record{}} }

// add takes a record, which replaces one of the same ID.
func (t *tail) add(r flowapi.Record) {
	if _, known := t.byID[r.ID]; !known {
		t.order = append(t.order, r.ID)
	}
	if t.byID[r.ID] = r; len(t.order) > 2*t.most {
		t.cut()
	}
}

// cut drops all but the newest.
func (t *tail) cut() {
	slices.SortStableFunc(t.order, func(a, b string) int { return t.byID[a].Start.Compare(t.byID[b].Start) })
	if old := len(t.order) - t.most; old > 0 {
		for _, id := range t.order[:old] {
			delete(t.byID, id)
		}
		t.order = slices.Delete(t.order, 0, old)
	}
}

// records returns the newest, the oldest of them first.
func (t *tail) records() []flowapi.Record {
	t.cut()
	out := make([]flowapi.Record, len(t.order))
	for i, id := range t.order {
		out[i] = t.byID[id]
	}
	return out
}
