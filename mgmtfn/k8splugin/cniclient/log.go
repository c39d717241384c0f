package cniclient

import (
	"fmt"
	"os"
	"time"
)

// maxLog is the size in bytes from which the log starts anew; one old copy is kept.
const maxLog = 50 << 20

// logFile is a log that never fails a call: where it cannot be written, nothing is.
type logFile struct {
	f   *os.File
	tag string
}

func openLog(path, netns string) *logFile {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		_ = os.Rename(path, path+".old")
	}
	if netns == "" {
		netns = "EMPTY"
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return &logFile{}
	}
	return &logFile{f: f, tag: netns}
}

func (l *logFile) printf(format string, args ...any) {
	if l.f == nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	_, _ = fmt.Fprintf(l.f, "time=%q NETNS=%s msg=%q\n", time.Now().Format(time.RFC3339Nano), l.tag, line)
}

func (l *logFile) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}
