package commands

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// broken is an output nothing can be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestBrokenOutput: what cannot be printed is a failure, with a status of its own,
// whatever the command prints.
func TestBrokenOutput(t *testing.T) {
	url := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	for _, line := range []string{
		"tenant inspect default", "global inspect", "tenant ls", "tenant ls -j", "tenant ls -q", "tenant ls --watch", "tenant ls -w -j",
		"global info", "global info -j", "tenant create new", "export", "export -j", "version", "--version", "completion bash",
	} {
		var stderr bytes.Buffer
		args := append([]string{"netctl", "--netmaster", url}, strings.Fields(line)...)
		if status := Run(t.Context(), args, strings.NewReader(""), broken{}, &stderr); status != exitLocal {
			t.Errorf("%s: exit status %d, %s", line, status, &stderr)
		}
		if !strings.Contains(stderr.String(), "no space left") || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: says %q", line, &stderr)
		}
	}
}
