package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// settleCreation is what the last answer to a creation means that an earlier try may have
// carried out: networks, tenants, rules and external contracts cannot be created twice, so an
// object that has all that was sent is the one that was asked for. text is what was sent, line
// the answer.
func (c *Client) settleCreation(ctx context.Context, r *repeater, text []byte, line string) (object []byte, created bool) {
	if r.method != http.MethodPost && r.method != http.MethodPut || !strings.HasSuffix(line, " exists") {
		return nil, false
	}
	var there json.RawMessage
	if err := c.call(ctx, http.MethodGet, r.path, nil, &there); err != nil {
		return nil, false
	}
	var sent, have any
	if json.Unmarshal(text, &sent) != nil || json.Unmarshal(there, &have) != nil {
		return nil, false
	}
	return there, covers(have, sent)
}

// covers reports whether a JSON value has all that another one says. What is empty there was
// left to the server.
func covers(have, sent any) bool {
	switch sent := sent.(type) {
	case map[string]any:
		fields, ok := have.(map[string]any)
		for name, v := range sent {
			if !empty(v) && (!ok || !covers(fields[name], v)) {
				return false
			}
		}
		return true
	case []any:
		list, _ := have.([]any)
		return slices.EqualFunc(list, sent, covers)
	}
	return have == sent
}

func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			if !empty(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return v == nil || v == "" || v == 0.0 || v == false
}

// answered replaces an answer by that of success.
func answered(resp *http.Response, text []byte) *http.Response {
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(text))
	return resp
}
