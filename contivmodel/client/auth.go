package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// AuthPath is where netmaster serves the login API.
const AuthPath = "/api/v1/auth_proxy/"

// maxAuthAnswer bounds an answer of the login API, in bytes.
const maxAuthAnswer = 8 << 20

// Auth sends a request to the login API; path is below AuthPath. See JSON.
func (c *Client) Auth(ctx context.Context, method, path string, in, out any) error {
	return c.JSON(ctx, method, AuthPath+path, in, out)
}

// JSON sends a request to a path that is not about objects. in, if not nil, is sent as JSON,
// and the answer is read into out, if not nil. A refusal gives an *Error with the server's
// reason.
func (c *Client) JSON(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.Do(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAuthAnswer))
	switch {
	case err != nil:
		return errs.New(errs.Unavailable, "read the answer: %w", err)
	case resp.StatusCode == http.StatusNotFound && !strings.HasPrefix(strings.TrimSpace(string(text)), "{"):
		return &Error{Status: resp.StatusCode, Text: "this server does not know " + path + ": it is older, or runs with --tls off"}
	case resp.StatusCode >= http.StatusMultipleChoices:
		return &Error{Status: resp.StatusCode, Text: reason(resp.Status, text)}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return errs.Wrap(errs.Internal, fmt.Errorf("the answer is not what was expected: %w", err))
	}
	return nil
}

// reason reads why a request was refused: {"error": "…"}, or a line of text.
func reason(status string, text []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	switch {
	case json.Unmarshal(text, &e) == nil && e.Error != "":
		return e.Error
	case line != "":
		return line
	}
	return status
}
