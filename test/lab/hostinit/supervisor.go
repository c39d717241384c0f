package hostinit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// Daemon says how a program is started.
type Daemon struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // program first, looked up in Path
	Env  []string `json:"env,omitempty"`
	Log  string   `json:"log"` // standard output and error are appended here
	// Restart starts the daemon again when it ends without having been stopped, as a
	// unit of systemd would.
	Restart bool `json:"restart,omitempty"`
}

// Status is what a daemon does.
type Status struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"` // as the host sees it
	Running bool      `json:"running"`
	Since   time.Time `json:"since"`
	Exit    string    `json:"exit,omitempty"` // how it ended: "exit status 22", "killed"
	Starts  int       `json:"starts"`
	// Crash says how one of its runs ended that neither Stop nor SIGKILL has ended.
	Crash string `json:"crash,omitempty"`
}

// supervisor starts daemons and reaps every child of process 1, orphans included.
type supervisor struct {
	mu      sync.Mutex // held from fork to registration, so that a child is known when it is reaped
	daemons map[string]*process
}

type process struct {
	Status
	daemon  Daemon
	stopped bool // somebody wants it to end
	exited  chan struct{}
}

func newSupervisor() *supervisor { return &supervisor{daemons: map[string]*process{}} }

func (s *supervisor) start(d Daemon) (Status, error) {
	if d.Name == "" || len(d.Args) == 0 {
		return Status{}, errs.New(errs.Invalid, "daemon %q: a name and a program are needed", d.Name)
	}
	program, err := exec.LookPath(d.Args[0])
	if err != nil {
		return Status{}, errs.New(errs.NotFound, "start %s: %w", d.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(d.Log), 0o755); err != nil {
		return Status{}, err
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return Status{}, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Status{}, err
	}
	defer null.Close()

	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.daemons[d.Name]
	if before != nil && before.Running {
		return Status{}, errs.New(errs.Exists, "%s is running with pid %d", d.Name, before.PID)
	}
	pid, err := syscall.ForkExec(program, d.Args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(os.Environ(), d.Env...),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return Status{}, fmt.Errorf("start %s: %w", program, err)
	}
	p := &process{daemon: d, exited: make(chan struct{}), Status: Status{
		Name: d.Name, PID: pid, Running: true, Since: time.Now(), Starts: 1,
	}}
	if before != nil {
		p.Starts, p.Crash = before.Starts+1, before.Crash
	}
	s.daemons[d.Name] = p
	return p.Status, nil
}

// stop signals a daemon and waits until it has ended or ctx has. One that does not
// run is no error.
func (s *supervisor) stop(ctx context.Context, name string, sig syscall.Signal) (Status, error) {
	s.mu.Lock()
	p := s.daemons[name]
	var err error
	if p != nil && p.Running {
		// Under the lock the process cannot have been reaped: its pid is its own.
		err = unix.Kill(p.PID, sig)
		p.stopped = true
	} else if p != nil {
		p.stopped = true // nor is it started again
	}
	s.mu.Unlock()
	if p == nil {
		return Status{Name: name}, nil
	}
	if err != nil {
		return Status{}, fmt.Errorf("signal %s to %s: %w", sig, name, err)
	}
	return s.wait(ctx, p)
}

// exit waits for the end of the daemon's present run.
func (s *supervisor) exit(ctx context.Context, name string) (Status, error) {
	s.mu.Lock()
	p := s.daemons[name]
	s.mu.Unlock()
	if p == nil {
		return Status{}, errs.New(errs.NotFound, "daemon %s was never started", name)
	}
	return s.wait(ctx, p)
}

func (s *supervisor) wait(ctx context.Context, p *process) (Status, error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return Status{}, fmt.Errorf("wait for %s to end: %w", p.Name, context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Status, nil
}

func (s *supervisor) list() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, 0, len(s.daemons))
	for _, p := range s.daemons {
		all = append(all, p.Status)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// reap collects the children that have ended.
func (s *supervisor) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		for _, p := range s.daemons {
			if p.PID == pid && p.Running {
				lived := time.Since(p.Since)
				p.Running, p.Since, p.Exit = false, time.Now(), describe(ws)
				close(p.exited)
				if ws.Signaled() && ws.Signal() != unix.SIGKILL && !p.stopped {
					p.Crash = p.Exit
				}
				if p.daemon.Restart && !p.stopped {
					s.restart(p, lived)
				}
			}
		}
	}
}

// Pauses before a daemon is started again: soon, unless it ends at once every time.
const (
	restartSoon  = 100 * time.Millisecond
	restartLater = time.Second
)

// restart starts a daemon again after a pause, unless somebody has stopped it meanwhile
// or has been faster.
func (s *supervisor) restart(p *process, lived time.Duration) {
	pause := restartSoon
	if lived < restartLater {
		pause = restartLater
	}
	time.AfterFunc(pause, func() {
		s.mu.Lock()
		wanted := !p.stopped && s.daemons[p.Name] == p
		s.mu.Unlock()
		if !wanted {
			return
		}
		if _, err := s.start(p.daemon); err != nil && !errs.Is(err, errs.Exists) {
			fmt.Fprintf(os.Stderr, "start %s again: %v\n", p.Name, err)
		}
	})
}

func describe(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return ws.Signal().String()
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}
