package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	tailLines  = 15
	crashLines = 150 // of what a program says last
	tailBytes  = 64 << 10
	tailWidth  = 400 // bytes of a line
)

// LogTail is the end of a daemon's log, to be read with an error.
func (h *Host) LogTail(daemon string) string {
	path := h.LogFile(daemon)
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return fmt.Sprintf("(no log: %v)", err)
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return "the end of " + path + ":\n" + lastLines(b, tailLines)
}

// endsGo reports whether a line begins what a program in Go says last: a panic, a fatal error,
// or what the race detector has found.
func endsGo(line []byte) bool {
	return bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) || bytes.Equal(line, []byte("WARNING: DATA RACE"))
}

// lastLines are the last n lines, or those from where the program has ended.
func lastLines(b []byte, n int) string {
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	first := max(0, len(lines)-n)
	if at := slices.IndexFunc(lines, endsGo); at >= 0 && at < first {
		first, lines = at, lines[:min(len(lines), at+crashLines)]
	}
	lines = lines[first:]
	var out strings.Builder
	for _, line := range lines {
		if len(line) > tailWidth {
			line = append(line[:tailWidth:tailWidth], " …"...)
		}
		fmt.Fprintf(&out, "  | %s\n", line)
	}
	return strings.TrimRight(out.String(), "\n")
}
