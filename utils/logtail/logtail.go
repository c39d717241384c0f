// Package logtail keeps the last lines of a daemon's log in memory, for support bundles.
package logtail

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/redact"
)

// Bounds in bytes.
const (
	DefaultSize = 512 << 10 // of all lines
	longest     = 4 << 10   // of one
)

// Tail is the last lines of a log, without secrets. Add it to a logger as a hook. Create it with
// New. Safe for concurrent use.
type Tail struct {
	format logrus.TextFormatter

	mu    sync.Mutex
	size  int
	used  int
	lines [][]byte
}

// New makes a Tail of at most size bytes.
func New(size int) *Tail {
	return &Tail{size: size, format: logrus.TextFormatter{DisableColors: true, FullTimestamp: true, TimestampFormat: "2006-01-02T15:04:05.000Z07:00"}}
}

// Levels implements logrus.Hook: what the logger writes, of whatever level.
func (t *Tail) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (t *Tail) Fire(e *logrus.Entry) error {
	line, err := t.format.Format(e)
	if err != nil {
		return err
	}
	line = cut([]byte(redact.Text(string(line))))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines, t.used = append(t.lines, line), t.used+len(line)
	drop := 0
	for ; t.used > t.size && drop < len(t.lines); drop++ {
		t.used -= len(t.lines[drop])
		t.lines[drop] = nil
	}
	t.lines = t.lines[drop:]
	return nil
}

// cut shortens a line that is too long, between characters. It ends in a newline.
func cut(line []byte) []byte {
	if len(line) <= longest {
		return line
	}
	end := longest
	for end > longest-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return append(line[:end:end], " (cut)\n"...)
}

// Write writes the lines, the oldest first.
func (t *Tail) Write(w io.Writer) error {
	t.mu.Lock()
	lines := append([][]byte(nil), t.lines...)
	t.mu.Unlock()
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
