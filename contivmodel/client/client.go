// Package client talks to netmaster's REST API in terms of contivmodel. It is what
// netctl, the agents' tools and the tests use.
//
//	c, err := client.New(client.Config{URLs: []string{"http://netmaster:9999"}})
//	nets, err := client.List(ctx, c, contivmodel.NetworkKind())
//
// Any netmaster will do: followers pass requests on to the leader. With several URLs,
// the next one is tried when one cannot be reached, or answers that nobody leads yet.
//
// A request that netmaster refuses gives an *Error with the server's text.
package client

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

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/httproutes"
	"github.com/contiv/netplugin/utils/retry"
)

// defaultTimeout bounds a request with all its tries.
const defaultTimeout = 60 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 256 << 20

// Config says how to reach netmaster.
type Config struct {
	// URLs are base URLs, http or https, of one or more netmasters of a cluster, or of
	// an authenticating proxy before them; or unix:///PATH, a socket of this host.
	URLs []string
	// CA is the cluster's certificate authority, in PEM: servers must have a certificate of
	// it as netmasters have. Empty: they must have one for their address that the system
	// accepts.
	CA []byte
	// Insecure accepts any TLS certificate.
	Insecure bool
	// Token is sent as X-Auth-Token, over https only.
	Token string
	// Timeout bounds a request; 0 means 60 s.
	Timeout time.Duration
	// Patience is how long a request is repeated while no netmaster can be reached, or
	// none leads, as when one leader follows another; 0 means not at all. Requests that may
	// have been served are repeated only if that changes nothing.
	Patience time.Duration
}

// Client is a connection to the netmasters of a cluster. Safe for concurrent use.
type Client struct {
	bases  []base
	token  string
	http   *http.Client
	stream *http.Client // without a time limit

	patience time.Duration
}

// Error is an answer other than 200.
type Error struct {
	Status int    // HTTP status code
	Text   string // the server's text, one line
}

func (e *Error) Error() string { return e.Text }

// New checks the URLs; it does not connect.
func New(cfg Config) (*Client, error) {
	if len(cfg.URLs) == 0 {
		return nil, errs.New(errs.Invalid, "no netmaster URL given")
	}
	c := &Client{token: cfg.Token, patience: cfg.Patience}
	for _, text := range cfg.URLs {
		b, err := parseBase(text)
		if err != nil {
			return nil, err
		}
		c.bases = append(c.bases, b)
	}
	settings, err := tlsConfig(cfg)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = settings
	transport.DialContext = dialBases(c.bases, transport.DialContext)
	transport.MaxIdleConnsPerHost = 16
	c.http = &http.Client{Transport: transport, Timeout: cfg.Timeout, CheckRedirect: sameServer}
	c.stream = &http.Client{Transport: transport, CheckRedirect: sameServer}
	if cfg.Timeout == 0 {
		c.http.Timeout = defaultTimeout
	}
	return c, nil
}

// sameServer follows a redirect only to the server that was asked: the token is for no other.
func sameServer(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// List returns the objects of a kind, sorted by key.
func List[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O]) ([]T, error) {
	var objs []T
	err := c.call(ctx, http.MethodGet, objectPath(kind.Collection), nil, &objs)
	return objs, err
}

// Get returns one object.
func Get[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], key string) (*T, error) {
	obj := new(T)
	if err := c.call(ctx, http.MethodGet, objectPath(kind.Collection, key), nil, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// Put creates an object, or updates the one whose naming fields are the same, and
// returns it as stored.
func Put[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], obj *T) (*T, error) {
	stored, _, err := PutChange(ctx, c, kind, obj)
	return stored, err
}

// PutChange is Put that also says where a host has to be to have applied the change.
func PutChange[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], obj *T) (*T, Change, error) {
	stored := new(T)
	ch, err := c.change(ctx, http.MethodPost, objectPath(kind.Collection, kind.Ident(obj)), obj, stored)
	if err != nil {
		return nil, ch, err
	}
	return stored, ch, nil
}

// Delete removes an object.
func Delete[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], key string) error {
	_, err := DeleteChange(ctx, c, kind, key)
	return err
}

// DeleteChange is Delete that also says where a host has to be to have applied it.
func DeleteChange[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], key string) (Change, error) {
	return c.change(ctx, http.MethodDelete, objectPath(kind.Collection, key), nil, nil)
}

// Inspect returns an object with what is in use by it.
func Inspect[T, O any](ctx context.Context, c *Client, kind contivmodel.Kind[T, O], key string) (*contivmodel.Inspection[T, O], error) {
	v := new(contivmodel.Inspection[T, O])
	if err := c.call(ctx, http.MethodGet, objectPath("inspect", kind.Collection, key), nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// InspectEndpoint finds an endpoint by (part of) its id, its container's id or name.
func (c *Client) InspectEndpoint(ctx context.Context, search string) (*contivmodel.EndpointInspection, error) {
	v := new(contivmodel.EndpointInspection)
	if err := c.call(ctx, http.MethodGet, objectPath("inspect", contivmodel.EndpointCollection, search), nil, v); err != nil {
		return nil, err
	}
	return v, nil
}

// objectPath joins path segments under /api/v1/, escaped, with the trailing slash.
func objectPath(segments ...string) string {
	path := "/api/v1/"
	for _, s := range segments {
		path += url.PathEscape(s) + "/"
	}
	return path
}

// Do sends a request to the first netmaster that can answer it. body, if not nil, is
// sent as JSON. The answer, whatever its status, is the caller's to close.
func (c *Client) Do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, errs.Wrap(errs.Internal, fmt.Errorf("encode the request: %w", err))
		}
	}
	r := repeater{method: method, path: path, pauses: retry.New(shortestPause, longestPause), until: time.Now().Add(c.patience)}
	if alloc, ok := body.(masterapi.AllocAddressRequest); ok {
		r.named = alloc.Reservation != ""
	}
	for {
		resp, err := c.round(ctx, &r, text)
		if !r.again(ctx, resp, err) {
			return c.settle(ctx, &r, resp, text), err
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
}

// round asks one netmaster after the other, until one can answer. The answer of the last
// one counts in any case.
func (c *Client) round(ctx context.Context, r *repeater, text []byte) (*http.Response, error) {
	var failed []string
	r.untrusted = true
	for i, base := range c.bases {
		req, err := c.request(ctx, r.method, base, r.path, text)
		if err != nil {
			return nil, err
		}
		resp, err := c.http.Do(req)
		last := i == len(c.bases)-1
		if err == nil && (last || resp.StatusCode != http.StatusServiceUnavailable) {
			return resp, nil
		}
		if err == nil {
			_ = resp.Body.Close()
			err = fmt.Errorf("%s: %s", base, resp.Status)
			r.served = true
		}
		failed = append(failed, err.Error())
		r.untrusted = r.untrusted && isUntrusted(err)
		if ctx.Err() != nil || resp == nil && !r.mayGoOn(err) {
			break
		}
	}
	return nil, errs.New(errs.Unavailable, "%s", strings.Join(failed, "; "))
}

func (c *Client) request(ctx context.Context, method string, at base, path string, text []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if at.socket != "" {
		req.Host = "localhost"
	}
	if len(text) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" && req.URL.Scheme == "https" {
		req.Header.Set("X-Auth-Token", c.token)
	}
	return req, nil
}

// call sends a request and reads its answer into v, if v is not nil.
func (c *Client) call(ctx context.Context, method, path string, body, v any) error {
	resp, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	return readAnswer(resp, v)
}

// refusal is what netmaster says to a client that may not do what it asks for.
func refusal(status int, text []byte) string {
	why := strings.TrimSpace(string(text))
	if status == http.StatusForbidden {
		return "Access denied! " + why
	}
	return why
}

func readAnswer(resp *http.Response, v any) error {
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return errs.Wrap(errs.Unavailable, fmt.Errorf("read the answer: %w", err))
	}
	if resp.Header.Get(httproutes.RefusedHeader) != "" {
		return &Error{Status: resp.StatusCode, Text: refusal(resp.StatusCode, text)}
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if v == nil {
			return nil
		}
		if err := json.Unmarshal(text, v); err != nil {
			return errs.Wrap(errs.Internal, fmt.Errorf("the answer is not what was expected: %w", err))
		}
		return nil
	case http.StatusNotFound:
		return &Error{Status: resp.StatusCode, Text: "Page not found!"}
	case http.StatusForbidden:
		return &Error{Status: resp.StatusCode, Text: "Access denied!"}
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests:
		if strings.HasPrefix(string(text), "{") { // about who asks
			return &Error{Status: resp.StatusCode, Text: reason(resp.Status, text)}
		}
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		if line := strings.TrimSpace(string(text)); line != "" {
			return &Error{Status: resp.StatusCode, Text: line}
		}
	}
	return &Error{Status: resp.StatusCode, Text: resp.Status}
}
