package systemtests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// buffer may be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// capture listens on a link of a host until the first frame that the filter lets
// through. The function it returns ends that and tells which frame that was, "" for
// none.
func (c cluster) capture(host, link, filter string) (frame func() string) {
	c.t.Helper()
	var out, errOut buffer
	cmd, err := c.Start(context.WithoutCancel(c.t.Context()), host, lab.Stdio{Out: &out, Err: &errOut},
		"tcpdump", "-l", "-n", "-e", "-c", "1", "--immediate-mode", "-i", link, filter)
	if err != nil {
		c.t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended with its frame
			_ = cmd.Wait()
		}
	}
	c.t.Cleanup(end)
	eventually.Succeeds(c.t, fmt.Sprintf("tcpdump listens on %s of %s", link, host), func() error {
		if text := errOut.String(); !strings.Contains(text, "listening") {
			return errors.New(text)
		}
		return nil
	})
	return func() string {
		// What the switch has sent is captured within this time.
		time.Sleep(200 * time.Millisecond)
		end()
		return strings.TrimSpace(out.String())
	}
}
