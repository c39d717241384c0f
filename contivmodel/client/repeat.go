package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/retry"
)

// Pace of repeating a request.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Second
)

// repeater decides whether a request is sent once more.
type repeater struct {
	method, path string
	named        bool // it asks for a reservation with a name
	until        time.Time
	pauses       *retry.Backoff
	served       bool // one try may have taken effect
	lost         bool // the last one was sent, may not be repeated, and has no answer
	untrusted    bool // every server of the last round has a certificate that does not count
}

// idempotent reports whether sending the request twice does the same as sending it once.
// Objects are created and updated in the same way. To reserve one more address is another
// reservation, unless it has a name.
func (r *repeater) idempotent() bool {
	return r.method != http.MethodPost || r.path != masterapi.PathAllocAddress || r.named
}

// mayGoOn reports whether a request without an answer may be sent to the next server: it only
// reads, or it has not been sent.
func (r *repeater) mayGoOn(err error) bool {
	var op *net.OpError
	unsent := errors.As(err, &op) && op.Op == "dial"
	if !unsent {
		r.served = true
	}
	r.lost = !unsent && !r.idempotent()
	return r.method == http.MethodGet || unsent
}

// again reports, after a pause, whether there is another round.
func (r *repeater) again(ctx context.Context, resp *http.Response, err error) bool {
	unavailable := err != nil && !r.lost && !r.untrusted
	if err == nil && resp.StatusCode == http.StatusServiceUnavailable {
		r.served = true // it may have been, when a leader was lost in the middle
		unavailable = r.idempotent()
	}
	if !unavailable || ctx.Err() != nil {
		return false
	}
	wait := r.pauses.Next()
	return !time.Now().Add(wait).After(r.until) && retry.Pause(ctx, wait)
}

// settle is what the last answer means if an earlier try may have taken effect: what is not
// there to be deleted has been deleted, what is there already has been created. text is what was
// sent.
func (c *Client) settle(ctx context.Context, r *repeater, resp *http.Response, text []byte) *http.Response {
	if !r.served || resp == nil || resp.StatusCode != http.StatusInternalServerError {
		return resp
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(said))
	if err != nil {
		return resp
	}
	line := strings.TrimSpace(string(said))
	if r.method == http.MethodDelete && (strings.HasSuffix(line, "not found") || strings.HasPrefix(line, "key not found")) {
		return answered(resp, []byte("null"))
	}
	if object, created := c.settleCreation(ctx, r, text, line); created {
		return answered(resp, object)
	}
	return resp
}
