// Package agents asks agents over their REST API (port 9090) what only they know, and
// tells them what no record in the store says. Agents are found by host label in the
// registry.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

const (
	defaultPort = 9090
	timeout     = 8 * time.Second // one call; netmaster's own callers wait 10 s
	maxAnswer   = 8 << 20         // bytes
)

// Client calls agents. Safe for concurrent use.
type Client struct {
	store objdb.Store
	port  int
	http  *http.Client
	open  *http.Client // for answers that stay open
}

// Dial connects to an agent, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// New returns a client that finds agents in the registry of store. port is where they
// serve HTTP; 0 means 9090. dial, if not nil, makes the connections.
func New(store objdb.Store, port int, dial Dial) *Client {
	if port == 0 {
		port = defaultPort
	}
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	// An address of the registry that leads elsewhere is not an agent's.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		store: store, port: port,
		http: &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: stay},
		open: &http.Client{Transport: transport, CheckRedirect: stay},
	}
}

// BGP is what an agent tells of its BGP speaker.
type BGP struct {
	Peers []struct {
		Config struct {
			NeighborAddress string
			PeerAs          uint32
		}
		State struct {
			SessionState         string
			AdminState           string
			Received, Advertised int // prefixes
		}
	} `json:"peers"`
	Dsts       []string `json:"dsts"`       // prefixes that neighbors have told of
	Advertised []string `json:"advertised"` // prefixes they have been told of
}

// InspectBGP asks the agent of a host about its BGP speaker.
func (c *Client) InspectBGP(ctx context.Context, host string) (BGP, error) {
	var bgp BGP
	status, text, err := c.call(ctx, host, http.MethodGet, "/inspect/bgp")
	if err == nil {
		err = refusal(status, text)
	}
	if err != nil {
		return bgp, fmt.Errorf("inspect bgp of host %s: %w", host, err)
	}
	if err := json.Unmarshal(text, &bgp); err != nil {
		return bgp, errs.Wrap(errs.Internal, fmt.Errorf("inspect bgp of host %s: %w", host, err))
	}
	return bgp, nil
}

// ReclaimEndpoint tells the agent of a host to take down an endpoint whose record is
// gone. An agent that does not know the endpoint has nothing to take down.
func (c *Client) ReclaimEndpoint(ctx context.Context, host, endpoint string) error {
	status, text, err := c.call(ctx, host, http.MethodDelete, "/debug/reclaimEndpoint/"+url.PathEscape(endpoint))
	if err == nil && status != http.StatusNotFound {
		err = refusal(status, text)
	}
	if err != nil {
		return fmt.Errorf("reclaim endpoint %s on host %s: %w", endpoint, host, err)
	}
	return nil
}

// Trace asks the agent of a host for the way of a packet through it.
func (c *Client) Trace(ctx context.Context, host string, hop traceapi.HopRequest) (*traceapi.Hop, error) {
	answer := &traceapi.Hop{}
	if err := c.ask(ctx, host, question{http.MethodPost, traceapi.PathAgent, "trace"}, hop, answer); err != nil {
		return nil, fmt.Errorf("ask host %s: %w", host, err)
	}
	if len(answer.Ends) == 0 {
		return nil, errs.New(errs.Internal, "ask host %s: its netplugin's answer cannot be read: it says nothing", host)
	}
	return answer, nil
}

// find returns the address of the agent of a host. An agent's control address comes
// before its tunnel address.
func (c *Client) find(ctx context.Context, host string) (string, error) {
	hosts, err := c.hosts(ctx)
	if err != nil {
		return "", err
	}
	addr, ok := hosts[host]
	if !ok {
		return "", errs.New(errs.NotFound, "host not found: no agent of host %q is registered", host)
	}
	return addr, nil
}

// call is send without a body.
func (c *Client) call(ctx context.Context, host, method, path string) (int, []byte, error) {
	return c.send(ctx, host, method, path, nil)
}

// send makes one request and returns status and body of its answer.
func (c *Client) send(ctx context.Context, host, method, path string, body []byte) (int, []byte, error) {
	addr, err := c.find(ctx, host)
	if err != nil {
		return 0, nil, err
	}
	return c.exchange(ctx, addr, method, path, body)
}

// exchange is send to an agent whose address is known.
func (c *Client) exchange(ctx context.Context, addr, method, path string, body []byte) (int, []byte, error) {
	resp, text, err := c.roundTrip(ctx, addr, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, text, nil
}

// roundTrip is exchange that returns all of the answer, its body read.
func (c *Client) roundTrip(ctx context.Context, addr, method, path string, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url(addr, path), bytes.NewReader(body))
	if err != nil {
		return nil, nil, errs.Wrap(errs.Internal, err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, errs.Wrap(errs.Internal, fmt.Errorf("the agent does not answer: %w", err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, errs.Wrap(errs.Internal, fmt.Errorf("read the agent's answer: %w", err))
	}
	return resp, text, nil
}

// url is that of a path of an agent whose address is known.
func (c *Client) url(addr, path string) string {
	return "http://" + net.JoinHostPort(addr, strconv.Itoa(c.port)) + path
}

// refusal is what a status other than 200 means.
func refusal(status int, text []byte) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return errs.New(errs.Internal, "page not found")
	case http.StatusForbidden:
		return errs.New(errs.Internal, "access denied")
	case http.StatusInternalServerError:
		return errs.New(errs.Internal, "%s", strings.TrimSpace(string(text)))
	default:
		return errs.New(errs.Internal, "%d %s", status, http.StatusText(status))
	}
}
