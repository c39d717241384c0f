package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

// InitArg is the first argument of a host's init. Those that follow are the lab's
// directory and the host's name: by them a lab finds its processes, so that none can
// be lost with a file, and no stale pid can name another process.
const InitArg = "__init"

const underlayName = "underlay"

// findInits finds a lab's inits: host name → pid.
func findInits(dir string) (map[string]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	inits := map[string]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if name, ok := initOf(pid, dir); ok {
			inits[name] = pid
		}
	}
	return inits, nil
}

// initOf reads which host of the lab in dir, if any, process pid is the init of.
func initOf(pid int, dir string) (name string, ok bool) {
	b := commandLine(pid)
	args := bytes.Split(bytes.TrimSuffix(b, []byte{0}), []byte{0})
	if len(args) != 4 || string(args[1]) != InitArg || string(args[2]) != dir {
		return "", false
	}
	return string(args[3]), true
}

// A process that is becoming another program has no command line for a moment, which is
// longer on a machine that has much to do.
const (
	becomingTries = 200
	becomingPause = 5 * time.Millisecond
)

// commandLine reads the command line of a process: its arguments, each ended by a zero.
// It is empty for a process that has ended, and for one of the kernel's own.
func commandLine(pid int) []byte {
	for range becomingTries {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(b) > 0 {
			return b
		}
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
			return nil
		}
		time.Sleep(becomingPause)
	}
	return nil
}

// startInit starts the init of a host and returns its pid when it is ready.
func (l *Lab) startInit(ctx context.Context, name string, c hostinit.Config) (pid int, err error) {
	if err := os.MkdirAll(l.path("hosts", name), 0o755); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(l.path("hosts", name, "init.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	config, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	ready, readyChild, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	cmd := exec.Command(l.cfg.Init, InitArg, l.cfg.Dir, name)
	cmd.Stdin = bytes.NewReader(config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{readyChild}
	cmd.Env = []string{"PATH=" + hostinit.Path, "HOME=/root", "LANG=C.UTF-8"}
	if race, set := os.LookupEnv("GORACE"); set { // for daemons that are built with the race detector
		cmd.Env = append(cmd.Env, "GORACE="+race)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	err = cmd.Start()
	readyChild.Close()
	if errors.Is(err, unix.EPERM) {
		return 0, errs.New(errs.Invalid, "make namespaces for %s: %w: the lab must run as root", name, err)
	}
	if err != nil {
		return 0, fmt.Errorf("start the init of %s: %w", name, err)
	}
	// Reaps the init when it ends, if this process lives that long.
	go func() { _ = cmd.Wait() }()
	stop := context.AfterFunc(ctx, func() { ready.Close() })
	defer stop()
	if err := hostinit.AwaitReady(ready); err != nil {
		return 0, fmt.Errorf("%s: %w", name, errors.Join(err, context.Cause(ctx)))
	}
	return cmd.Process.Pid, nil
}

// killInit ends a host with all its processes and returns when they have gone.
func killInit(ctx context.Context, dir, name string, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// Only now is it certain whose pid this is.
	if got, ok := initOf(pid, dir); !ok || got != name {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the init of %s, process %d: %w", name, pid, err)
	}
	return awaitExit(ctx, fd, name)
}

// awaitExit waits until the process behind a pidfd has ended. A pid namespace's
// process 1 ends after all others in it.
func awaitExit(ctx context.Context, pidfd int, name string) error {
	wake := make([]int, 2)
	if err := unix.Pipe2(wake, unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(wake[0])
	stop := context.AfterFunc(ctx, func() { unix.Close(wake[1]) })
	defer func() {
		if stop() {
			unix.Close(wake[1])
		}
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}, {Fd: int32(wake[0]), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the end of %s: %w", name, err)
		case fds[0].Revents != 0:
			return nil
		case fds[1].Revents != 0:
			return fmt.Errorf("wait for the end of %s: %w", name, context.Cause(ctx))
		}
	}
}

// inHostPath reports whether hosts will find a program of the machine.
func inHostPath(name string) bool {
	for _, dir := range filepath.SplitList(hostinit.Path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
