package securityapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/contiv/netplugin/utils/errs"
)

// Refused is an answer other than 200.
type Refused struct {
	Status int    // HTTP status code
	Text   string // the server's reason, one line
}

func (r *Refused) Error() string {
	if r.Text == "" {
		return fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
	}
	return r.Text
}

// NoRedirect keeps a client from following a server elsewhere.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call sends a JSON value, nil for none, and reads the answer into v. The response, for its
// header and its TLS state, has no body any more. An answer other than 200 is a *Refused;
// otherwise the error's kind is Unavailable if there is no answer, and Invalid if it is not
// what was expected.
func Call(ctx context.Context, client *http.Client, method, url string, body, v any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, errs.New(errs.Internal, "encode the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, errs.New(errs.Invalid, "%w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "%w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	if err != nil {
		return resp, errs.New(errs.Unavailable, "read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var said Error
		_ = json.Unmarshal(answer, &said) // or it says nothing
		return resp, &Refused{Status: resp.StatusCode, Text: said.Error}
	}
	if err := json.Unmarshal(answer, v); err != nil {
		return resp, errs.New(errs.Invalid, "the answer is not what was expected: %w", err)
	}
	return resp, nil
}
