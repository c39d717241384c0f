// Command contiv-lab makes clusters of hosts on one machine: namespaces with an Open
// vSwitch and the real daemons in each. See package lab.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/contiv/netplugin/test/lab"
)

func main() {
	if status, played := lab.Play(os.Args); played {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(binDir()).Run(ctx, os.Args)
	stop()
	os.Exit(status(err))
}

// status reports an error and turns it into an exit status: that of the command for
// exec and netctl, 2 for a wrong command line, 1 for the rest.
func status(err error) int {
	var ended endedError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		if ws, ok := ended.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return ended.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "contiv-lab:", err)
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// endedError is how a command ended that was run on the user's behalf: it has said
// itself what was wrong.
type endedError struct{ *exec.ExitError }

// binDir is where this program is, and the other binaries with it.
func binDir() string {
	self, err := os.Executable()
	if err != nil {
		return "bin"
	}
	return filepath.Dir(self)
}
