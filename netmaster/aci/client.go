package aci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// DefaultURL is where a gateway on netmaster's own host listens.
const DefaultURL = "http://localhost:5000/"

const (
	callTimeout = 5 * time.Second // two of them fit into what callers of netmaster wait
	maxAnswer   = 1 << 20         // bytes
)

// Client calls a gateway. Safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client of the gateway at base, an http or https URL; "" means
// DefaultURL.
func NewClient(base string) (*Client, error) {
	if base == "" {
		base = DefaultURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errs.New(errs.Invalid, "ACI gateway %q is not a URL, expected http://host:port/", base)
	}
	return &Client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Timeout: callTimeout}}, nil
}

// Create has the gateway build an app profile that it does not have.
func (c *Client) Create(ctx context.Context, p Profile) error {
	return c.post(ctx, "createAppProf", p.Tenant, p.Name, p)
}

// Delete has the gateway take an app profile down.
func (c *Client) Delete(ctx context.Context, tenant, name string) error {
	return c.post(ctx, "deleteAppProf", tenant, name, struct {
		Tenant string `json:"tenant"`
		Name   string `json:"app-prof"`
	}{tenant, name})
}

func (c *Client) post(ctx context.Context, call, tenant, name string, body any) error {
	if err := c.exchange(ctx, c.base+"/"+call, body); err != nil {
		return fmt.Errorf("%s %s:%s at the ACI gateway %s: %w", call, tenant, name, c.base, err)
	}
	return nil
}

// exchange makes one request. Whatever is not a success in so many words is an error.
func (c *Client) exchange(ctx context.Context, target string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(text))
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return errs.Wrap(errs.Unavailable, fmt.Errorf("the gateway does not answer: %w", err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return errs.Wrap(errs.Unavailable, fmt.Errorf("read the gateway's answer: %w", err))
	}
	if resp.StatusCode != http.StatusOK {
		return errs.New(errs.Other, "the gateway answers %s: %.200q", resp.Status, text)
	}
	var answer struct{ Result, Info string }
	if err := json.Unmarshal(text, &answer); err != nil {
		return errs.New(errs.Other, "the gateway's answer is not JSON: %.200q", text)
	}
	if answer.Result != "success" {
		return errs.New(errs.Other, "the gateway answers %q: %s", answer.Result, answer.Info)
	}
	return nil
}
