package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Limits of a call: to connect, and of its answer in bytes.
const (
	connectTimeout = 5 * time.Second
	maxAnswer      = 1 << 20
)

// How long calls of a plugin may take as a whole. A runtime itself waits two to four
// minutes.
const (
	AddTimeout   = 60 * time.Second
	OtherTimeout = 30 * time.Second
)

// Post puts req as JSON to the agent on its unix socket and returns the answer's HTTP
// status and body. An error means that there was no whole answer; it wraps what the
// system said.
func Post(socket, path string, timeout time.Duration, req any) (status int, body []byte, err error) {
	raw, err := json.Marshal(req)
	if err != nil {
		return 0, nil, fmt.Errorf("encode the request: %w", err)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	client := http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Post("http://localhost"+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return resp.StatusCode, body, nil
}
