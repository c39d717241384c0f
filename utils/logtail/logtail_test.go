package logtail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

func logger(t *Tail) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(t)
	return log
}

func text(t *testing.T, tail *Tail) string {
	t.Helper()
	var b bytes.Buffer
	if err := tail.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTail: the newest lines stay as far as there is room, in order, also when many write.
func TestTail(t *testing.T) {
	tail := New(2000)
	log := logger(tail)
	log.Debug("below the level of the log")
	if got := text(t, tail); got != "" {
		t.Errorf("%q", got)
	}
	for i := range 100 {
		log.WithField("n", i).Info("something has changed")
	}
	got := text(t, tail)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(got) > 2000 || len(lines) < 15 || !strings.Contains(lines[len(lines)-1], "n=99") || !strings.Contains(lines[0], fmt.Sprint("n=", 100-len(lines))) {
		t.Errorf("%d bytes, %d lines: %s", len(got), len(lines), got)
	}
	log.Error(strings.Repeat("ä", 5000))
	if got := text(t, tail); got != "" { // longer than all that there is room for
		t.Errorf("%d bytes", len(got))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				log.Info("at once")
				_ = tail.Write(io.Discard)
			}
		})
	}
	all.Wait()
	if got := text(t, tail); len(got) > 2000 || strings.Count(got, "\n") < 15 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestSecrets: secrets do not even come in, a line is bounded, and names with line breaks make
// no lines.
func TestSecrets(t *testing.T) {
	tail := New(DefaultSize)
	log := logger(tail)
	log.WithError(errors.New("dial http://root:hunter2-Pa55@192.0.2.1:2379: refused")).WithField("password", "hunter2-Pa55").Warn("token=hunter2-Pa55\nlevel=error forged")
	log.Info(strings.Repeat("€", 5000))
	got := text(t, tail)
	if strings.Contains(got, "hunter2") || strings.Count(got, "\n") != 2 || len(got) > longest+600 || !strings.Contains(got, "192.0.2.1:2379: refused") || !strings.HasSuffix(got, "€ (cut)\n") {
		t.Errorf("%d bytes: %.900s", len(got), got)
	}
}
