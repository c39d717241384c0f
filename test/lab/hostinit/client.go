package hostinit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Client talks to the init of one host.
type Client struct{ http *http.Client }

// NewClient makes a client for the init that is process pid on this machine.
func NewClient(pid int) *Client {
	socket := fmt.Sprintf("/proc/%d/root%s", pid, SocketPath)
	return &Client{&http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // a client outlives many short commands; it should hold nothing open
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Daemons lists the daemons that were ever started, by name.
func (c *Client) Daemons(ctx context.Context) (all []Status, err error) {
	return all, c.call(ctx, http.MethodGet, "/daemons", nil, &all)
}

// Start starts a daemon; one that runs already is an error.
func (c *Client) Start(ctx context.Context, d Daemon) (s Status, err error) {
	return s, c.call(ctx, http.MethodPut, "/daemons/"+d.Name, d, &s)
}

// Stop signals a daemon and waits for its end. One that does not run is no error.
func (c *Client) Stop(ctx context.Context, name string, signal syscall.Signal) (s Status, err error) {
	return s, c.call(ctx, http.MethodDelete, fmt.Sprintf("/daemons/%s?signal=%d", name, signal), nil, &s)
}

// Exit waits for the end of the daemon's present run.
func (c *Client) Exit(ctx context.Context, name string) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/daemons/"+name+"/exit", nil, &s)
}

// AddNetns makes a network namespace and returns its path in the host.
func (c *Client) AddNetns(ctx context.Context, name string) (path string, err error) {
	return path, c.call(ctx, http.MethodPut, "/netns/"+name, nil, &path)
}

// RemoveNetns removes a network namespace; one that is not there is no error.
func (c *Client) RemoveNetns(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/netns/"+name, nil, nil)
}

func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://init"+path, content)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the host's init: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the host's init: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", strings.TrimSpace(string(b)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}

// ParseSignal reads a signal's name, with or without SIG.
func ParseSignal(name string) (syscall.Signal, error) {
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	if s := unix.SignalNum(full); s != 0 {
		return s, nil
	}
	return 0, fmt.Errorf("signal %q: expected a name such as TERM or KILL", name)
}
