package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/eventually"
)

// slowSource is a log whose events a test sends.
type slowSource chan *flowapi.Event

func (s slowSource) Stream(ctx context.Context, f flowapi.Filter, emit func(*flowapi.Event) error, _ func() error) error {
	if !f.Audited || !f.Follow {
		return errors.New("the audit file wants what is audited, as it comes")
	}
	for {
		select {
		case ev := <-s:
			if err := emit(ev); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// lines are the events in an audit file.
func lines(t *testing.T, path string) (out []flowapi.Event) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for all := bufio.NewScanner(f); all.Scan(); {
		var ev flowapi.Event
		if err := json.Unmarshal(all.Bytes(), &ev); err != nil {
			t.Fatalf("%s: %v", all.Text(), err)
		}
		out = append(out, ev)
	}
	return out
}

// TestAudit: the audit file gets connections when they begin and when they end, and gaps. A
// disk that takes nothing is said once, and what it has not taken stands in the file when it
// does again.
func TestAudit(t *testing.T) {
	log, said := test.NewNullLogger()
	dir := filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // not a directory
		t.Fatal(err)
	}
	e, source := NewAudit(dir, "host1", 1<<20, 2, log), make(slowSource)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, source) }()
	open := record(0)
	open.End = time.Time{}
	gap := &flowapi.Event{Gap: &flowapi.Gap{Host: "host1", Count: 7, Why: "too many"}}
	lost := func(n uint64, have *atomic.Uint64) {
		t.Helper()
		eventually.Succeeds(t, "lines are counted", func() error {
			if have.Load() < n {
				return errors.New("not yet")
			}
			return nil
		})
	}
	source <- &flowapi.Event{Record: open}
	lost(1, &e.lost)
	source <- gap
	lost(2, &e.lost)
	if e.Failing() == nil {
		t.Error("a file that cannot be written is not told of")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	source <- &flowapi.Event{Record: open}
	lost(1, &e.sent)
	source <- &flowapi.Event{Record: record(0)}
	source <- gap
	lost(3, &e.sent)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || e.Failing() != nil {
		t.Error(err, e.Failing())
	}
	all := lines(t, filepath.Join(dir, AuditFile))
	if len(all) != 4 || all[0].Gap == nil || all[0].Gap.Count != 2 || all[0].Gap.Host != "host1" || all[0].Gap.From.IsZero() || all[1].Record == nil || !all[1].Record.End.IsZero() ||
		all[2].Record == nil || all[2].Record.End.IsZero() || all[2].Record.ID != all[1].Record.ID || all[3].Gap == nil || all[3].Gap.Count != 7 {
		t.Errorf("%+v", all)
	}
	warnings := 0
	for _, entry := range said.AllEntries() {
		if entry.Level == logrus.WarnLevel && strings.Contains(entry.Message, "does not take") {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("said %d times", warnings)
	}
}
