package agents

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// question is a request to the agent of a host.
type question struct {
	host, method, path string
	// what begins the text of a 404 of an agent that knows the path, but not the object. One
	// that does not know the path is too old, and cannot do something yet.
	what, cannot string
}

// ask sends in as JSON, unless it is nil, and reads the answer into out.
func (c *Client) ask(ctx context.Context, q question, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return errs.Wrap(errs.Internal, err)
		}
	}
	status, text, err := c.send(ctx, q.host, q.method, q.path, body)
	if err == nil {
		err = q.refusal(status, text)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return errs.New(errs.Internal, "its netplugin's answer cannot be read: %w", err)
	}
	return nil
}

// refusal is what an answer means that is not 200.
func (q question) refusal(status int, text []byte) error {
	switch said := strings.Join(strings.Fields(string(text)), " "); {
	case status == http.StatusNotFound && !strings.HasPrefix(said, q.what+":"):
		return errs.New(errs.Internal, "its netplugin cannot %s yet; upgrade it", q.cannot)
	case status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusServiceUnavailable:
		return errs.New(errs.Internal, "%.400s", said)
	default:
		return refusal(status, text)
	}
}
