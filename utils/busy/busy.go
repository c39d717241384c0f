// Package busy takes the processors from everything else, for tests of what a starved
// machine does.
package busy

import (
	"os/exec"
	"syscall"
	"testing"
)

// Processes keeps n processes busy until the test ends, so that everything else gets what is
// left of the processors.
func Processes(t testing.TB, n int) {
	t.Helper()
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed is what it is supposed to be
		})
	}
}
