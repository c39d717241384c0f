package agents

import (
	"context"
	"net/http"
)

// Page asks the agent of a host for a page of its REST API.
func (c *Client) Page(ctx context.Context, host, path string) ([]byte, error) {
	status, text, err := c.call(ctx, host, http.MethodGet, path)
	if err == nil {
		err = refusal(status, text)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
