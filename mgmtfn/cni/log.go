package cni

import (
	"fmt"
	"io"
	"os"
	"time"
)

// maxLog is the size in bytes from which the log starts again; one old copy is kept.
const maxLog = 50 << 20

// Log is a plugin's log. It never fails a call.
type Log struct {
	w    io.Writer
	file *os.File // nil when the file cannot be written
	tags string
}

// OpenLog opens the log file at path, or takes w where that cannot be written. tags
// ("KEY=value …") are repeated in each line.
func OpenLog(path string, w io.Writer, tags string) *Log {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() >= maxLog {
		_ = os.Rename(path, path+".old")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return &Log{w: w, tags: tags}
	}
	return &Log{w: f, file: f, tags: tags}
}

// Printf writes a line.
func (l *Log) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(l.w, "time=%q %s msg=%q\n", time.Now().Format(time.RFC3339Nano), l.tags, fmt.Sprintf(format, args...))
}

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
