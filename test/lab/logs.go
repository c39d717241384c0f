package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
	tailWidth = 400 // bytes of a line
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

func lastLines(b []byte, n int) string {
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-n):]
	var out strings.Builder
	for _, line := range lines {
		if len(line) > tailWidth {
			line = append(line[:tailWidth:tailWidth], " …"...)
		}
		fmt.Fprintf(&out, "  | %s\n", line)
	}
	return strings.TrimRight(out.String(), "\n")
}
