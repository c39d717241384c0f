package lab

import (
	"fmt"
	"strings"
	"testing"
)

// TestLastLines: the end of a log is its last lines, but what a program says that crashes is
// there from its beginning.
func TestLastLines(t *testing.T) {
	var lines []string
	for n := range 30 {
		lines = append(lines, fmt.Sprint("line ", n))
	}
	end := func() string { return lastLines([]byte(strings.Join(lines, "\n")+"\n"), 5) }
	if got := end(); !strings.HasPrefix(got, "  | line 25\n") || !strings.HasSuffix(got, "  | line 29") {
		t.Errorf("the end is\n%s", got)
	}
	lines[28] = "panic: of late"
	if got := end(); !strings.HasPrefix(got, "  | line 25\n") {
		t.Errorf("with a crash in the last lines, the end is\n%s", got)
	}
	for _, crash := range []string{"WARNING: DATA RACE", "panic: no map", "fatal error: concurrent map writes"} {
		lines[10] = crash
		if got := end(); !strings.HasPrefix(got, "  | "+crash+"\n  | line 11\n") || !strings.HasSuffix(got, "  | line 29") {
			t.Errorf("with a crash before, the end is\n%s", got)
		}
	}
}
