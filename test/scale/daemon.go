package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// daemon is a process that runs until it is stopped.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts a program; what it says goes to a file.
func start(log string, c *exec.Cmd) (*daemon, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c.Stderr = f
	if c.Stdout == nil {
		c.Stdout = f
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: c, done: make(chan struct{})}
	go func() { defer close(d.done); _ = c.Wait() }()
	return d, nil
}

// kill ends it at once, and waits for its end.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// memory reads a line of /proc/PID/status (proc(5)), in bytes.
func (d *daemon) memory(line string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for l := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(l, []byte(line+":")); ok {
			var kib int64
			_, err := fmt.Sscan(string(rest), &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", d.cmd.Process.Pid, line)
}

// ticks is how many clock ticks a second has in /proc (proc(5)).
const ticks = 100

// cpu is the processor time that it has used.
func (d *daemon) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: expected at least 15 fields", d.cmd.Process.Pid)
	}
	var sum int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

// ready waits until a URL answers with 200.
func (d *daemon) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // nothing announces that a daemon serves
		case <-d.done:
			return fmt.Errorf("%s has ended before %s answered", d.cmd.Path, url)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", url, ctx.Err())
		}
	}
}

// logFile is where a daemon writes.
func logFile(dir, name string) string { return filepath.Join(dir, name+".log") }

// logs returns the ends of what daemons said.
func (c *testbed) logs() string {
	var out string
	for _, name := range []string{"netmaster", "agents", "etcd", "consul"} {
		if text, err := os.ReadFile(logFile(c.dir, name)); err == nil {
			out += "\n" + name + ": ..." + string(text[max(0, len(text)-2000):])
		}
	}
	return out
}
