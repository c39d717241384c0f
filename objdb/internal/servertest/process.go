package servertest

import (
	"bytes"
	"os/exec"
	"syscall"
	"testing"
)

// Process is a server that may be stopped and started again.
type Process struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

// NewProcess returns a server that does not run yet. It ends with the test, and tells
// what it had to say if that failed.
func NewProcess(t testing.TB, name string) *Process {
	t.Helper()
	p := &Process{}
	t.Cleanup(func() {
		p.Stop(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s says:\n%s", name, p.log.String())
		}
	})
	return p
}

// Start starts the server and does not wait for it.
func (p *Process) Start(t testing.TB, program string, args ...string) {
	t.Helper()
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
}

// Stop ends the server with a signal; one that does not run is left so.
func (p *Process) Stop(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // killed is what it is supposed to be
	p.cmd = nil
}
