package ovstest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// daemon is a child process that runs until it is ended.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
	once sync.Once
}

// start runs a daemon of Open vSwitch in the switch's namespace.
func (s *Switch) start(name string, args ...string) *daemon {
	s.t.Helper()
	c := exec.Command(name, append(args, "--log-file="+s.path(name+".log"), "-vconsole:off", "--pidfile="+s.path(name+".pid"))...)
	c.Env = s.env()
	c.Dir = s.dir
	// The kernel kills the daemon when the thread that started it ends, and so when the
	// test process dies without cleaning up. Therefore that thread waits for the daemon.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d := &daemon{cmd: c, done: make(chan struct{})}
	started := make(chan error, 2)
	go func() {
		defer close(d.done)
		err := onThread(func() error {
			if err := netns.Set(s.ns); err != nil {
				return err
			}
			if err := c.Start(); err != nil {
				return err
			}
			started <- nil
			c.Wait() // ended by a signal
			return nil
		})
		started <- err
	}()
	if err := <-started; err != nil {
		s.t.Fatalf("start %s (Debian package openvswitch-switch): %v", name, err)
	}
	return d
}

// end sends a signal, waits, and kills a daemon that does not end.
func (d *daemon) end(sig syscall.Signal) {
	d.once.Do(func() {
		d.cmd.Process.Signal(sig) // it may have ended
		t := time.NewTimer(10 * time.Second)
		defer t.Stop()
		select {
		case <-d.done:
		case <-t.C:
			d.cmd.Process.Kill() // it may have ended
			<-d.done
		}
	})
}

// newNamespace makes a network namespace that lives as long as its handle.
func newNamespace(t testing.TB) netns.NsHandle {
	t.Helper()
	ns := netns.None()
	err := onThread(func() (err error) {
		ns, err = netns.New()
		return err
	})
	if err != nil {
		t.Fatalf("make a network namespace (needs root): %v", err)
	}
	return ns
}

// InNamespace runs f on a thread in the switch's network namespace. Processes that f starts
// stay there; goroutines that it starts do not.
func (s *Switch) InNamespace(f func()) {
	s.t.Helper()
	err := onThread(func() error {
		if err := netns.Set(s.ns); err != nil {
			return err
		}
		f()
		return nil
	})
	if err != nil {
		s.t.Fatalf("enter the switch's network namespace: %v", err)
	}
}

// onThread runs f on a thread of its own and moves the thread back to its former namespace.
// It uses another goroutine so that f cannot be moved to another thread.
func onThread(f func() error) error {
	err := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, e := netns.Get()
		if e != nil {
			runtime.UnlockOSThread()
			err <- e
			return
		}
		defer home.Close()
		e = f()
		if back := netns.Set(home); back != nil {
			// The thread cannot be used for anything else: leave it locked, so that it
			// ends with this goroutine.
			err <- back
			return
		}
		runtime.UnlockOSThread()
		err <- e
	}()
	return <-err
}
