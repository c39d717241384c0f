package agents

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// question is a request to an agent.
type question struct {
	method, path string
	cannot       string // what an agent that does not know the path cannot do yet
}

// ask sends in as JSON, unless it is nil, and reads the answer into out.
func (c *Client) ask(ctx context.Context, host string, q question, in, out any) error {
	addr, err := c.find(ctx, host)
	if err != nil {
		return err
	}
	_, err = c.askAt(ctx, addr, q, in, out)
	return err
}

// askAt is ask for an agent whose address is known. It returns the header of the answer.
func (c *Client) askAt(ctx context.Context, addr string, q question, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, errs.Wrap(errs.Internal, err)
		}
	}
	resp, text, err := c.roundTrip(ctx, addr, q.method, q.path, body)
	if err == nil {
		err = q.refusal(resp.StatusCode, text)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, errs.New(errs.Internal, "its netplugin's answer cannot be read: %w", err)
	}
	return resp.Header, nil
}

// refusal is what an answer means that is not 200.
func (q question) refusal(status int, text []byte) error {
	switch said := strings.Join(strings.Fields(string(text)), " "); {
	case status == http.StatusNotFound && said == "404 page not found":
		return errs.New(errs.Internal, "its netplugin cannot %s yet; upgrade it", q.cannot)
	case status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusServiceUnavailable:
		return errs.New(errs.Internal, "%.400s", said)
	default:
		return refusal(status, text)
	}
}
