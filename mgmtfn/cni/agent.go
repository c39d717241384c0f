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

// Limits of a call: for connecting, and for the size of the reply in bytes.
const (
	connectTimeout = 5 * time.Second
	maxAnswer      = 1 << 20
)

// Limits of a plugin's calls as a whole. Runtimes wait two to four minutes.
const (
	AddTimeout   = 60 * time.Second
	OtherTimeout = 30 * time.Second
)

// Post posts req as JSON to the agent on its unix socket and returns the reply's HTTP
// status and body. An error means that there was no complete reply; it wraps the system's
// error.
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
