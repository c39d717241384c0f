// Package cluster is an agent's view of the other daemons: it registers the agent,
// and it finds the netmaster that leads and calls it.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// maxAnswer bounds a netmaster's answer, in bytes.
const maxAnswer = 8 << 20

// Master calls the leading netmaster. Create it with NewMaster.
type Master struct {
	http *http.Client

	mu      sync.Mutex
	leader  string // ip:port, empty while there is none
	changed signal.Signal
}

// Dial connects to a netmaster, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// NewMaster makes a client that knows no leader before Follow runs. dial, if not nil, makes
// its connections.
func NewMaster(dial Dial) *Master {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 10 * time.Second}).DialContext
	}
	return &Master{
		http: &http.Client{Transport: &http.Transport{
			DialContext: dial, MaxIdleConnsPerHost: 32, IdleConnTimeout: 60 * time.Second,
		}},
	}
}

// Follow keeps the leader's address current until ctx ends. While the store is down
// the last known leader is kept: it may well still lead.
func (m *Master) Follow(ctx context.Context, store objdb.Store) error {
	for batch := range store.Watch(ctx, state.LeaderKey) {
		leader, seen := "", batch.Snapshot
		for _, ev := range batch.Events {
			if ev.KV.Key == state.LeaderKey {
				leader, seen = string(ev.KV.Value), true
			}
		}
		if !seen {
			continue
		}
		m.mu.Lock()
		m.leader = leader
		m.changed.Broadcast()
		m.mu.Unlock()
	}
	return ctx.Err()
}

// Leader returns the leader's address, or "" while there is none.
func (m *Master) Leader() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader
}

// CreateEndpoint asks for an endpoint; asking again returns the same one.
func (m *Master) CreateEndpoint(ctx context.Context, req masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	var resp masterapi.CreateEndpointResponse
	_, err := m.post(ctx, masterapi.PathCreateEndpoint, req, &resp)
	return resp.EndpointConfig, err
}

// DeleteEndpoint removes an endpoint; one that does not exist is no error.
func (m *Master) DeleteEndpoint(ctx context.Context, req masterapi.DeleteEndpointRequest) error {
	var resp masterapi.DeleteEndpointResponse
	_, err := m.post(ctx, masterapi.PathDeleteEndpoint, req, &resp)
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// AllocAddress reserves an address; asking again by the same name of a reservation returns the
// same one.
func (m *Master) AllocAddress(ctx context.Context, req masterapi.AllocAddressRequest) (masterapi.AllocAddressResponse, error) {
	var resp masterapi.AllocAddressResponse
	_, err := m.post(ctx, masterapi.PathAllocAddress, req, &resp)
	return resp, err
}

// ReleaseAddress gives a reserved address back; one that is not reserved is no error.
func (m *Master) ReleaseAddress(ctx context.Context, req masterapi.ReleaseAddressRequest) error {
	var resp masterapi.ReleaseAddressResponse
	_, err := m.post(ctx, masterapi.PathReleaseAddress, req, &resp)
	return err
}

// UpdateEndpoint reports what happened to a container.
func (m *Master) UpdateEndpoint(ctx context.Context, req masterapi.UpdateEndpointRequest) error {
	var resp *masterapi.UpdateEndpointResponse // null for a container nobody knows
	_, err := m.post(ctx, masterapi.PathUpdateEndpoint, req, &resp)
	return err
}

// BGPSecret asks for the password of this host's BGP speaker.
func (m *Master) BGPSecret(ctx context.Context, host string) (string, error) {
	var resp masterapi.BGPSecret
	_, err := m.call(ctx, http.MethodGet, masterapi.PathBGPSecret(host), nil, &resp)
	return resp.Password, err
}

// CreateNetwork makes a network; one that exists with the same settings is no error.
func (m *Master) CreateNetwork(ctx context.Context, n contivmodel.Network) error {
	var resp contivmodel.Network
	_, err := m.post(ctx, networkPath(n.Key), n, &resp)
	return err
}

// DeleteNetwork removes the network of a key; one that does not exist is no error.
func (m *Master) DeleteNetwork(ctx context.Context, key string) error {
	var resp json.RawMessage
	_, err := m.call(ctx, http.MethodDelete, networkPath(key), nil, &resp)
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

func networkPath(key string) string {
	return "/api/v1/" + contivmodel.NetworkKind().Collection + "/" + url.PathEscape(key) + "/"
}

func (m *Master) post(ctx context.Context, path string, req, resp any) (revision int64, err error) {
	return m.call(ctx, http.MethodPost, path, req, resp)
}

// call makes a call that is safe to repeat, and repeats it until ctx ends while the
// cause is that nobody leads or the leader does not answer. A leader that has become
// mute is waited for until another one leads.
func (m *Master) call(ctx context.Context, method, path string, req, resp any) (revision int64, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return 0, err
	}
	again := retry.New(20*time.Millisecond, time.Second)
	for {
		m.mu.Lock()
		leader, changed := m.leader, m.changed.Next()
		m.mu.Unlock()
		err = errs.New(errs.Unavailable, "no netmaster is the leader; is one running?")
		if leader != "" {
			revision, err = m.once(ctx, method, leader, path, body, resp)
		}
		if err == nil || !errs.Is(err, errs.Unavailable) {
			return revision, err
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-changed:
			again.Reset()
		case <-time.After(again.Next()):
		}
	}
}

// whileLeads returns a context that ends with ctx, or when a netmaster other than leader
// has come to lead.
func (m *Master) whileLeads(ctx context.Context, leader string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			m.mu.Lock()
			now, changed := m.leader, m.changed.Next()
			m.mu.Unlock()
			if now != leader && now != "" {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

func (m *Master) once(ctx context.Context, method, leader, path string, body []byte, out any) (int64, error) {
	ctx, cancel := m.whileLeads(ctx, leader)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+leader+path, bytes.NewReader(body))
	if err != nil {
		return 0, errs.Wrap(errs.Invalid, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := m.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("netmaster did not answer in time: %w", err))
		}
		return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("netmaster: %w", err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("netmaster's answer: %w", err))
	}
	if resp.StatusCode != http.StatusOK {
		return 0, answerError(resp, strings.TrimSpace(string(answer)))
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return 0, errs.New(errs.Internal, "netmaster's answer: %w", err)
	}
	revision, _ := strconv.ParseInt(resp.Header.Get(masterapi.RevisionHeader), 10, 64)
	return revision, nil
}

// answerError gives a refused call its kind. netmaster answers 500 to whatever is
// wrong with a request, so the text has to tell a missing object from the rest.
func answerError(resp *http.Response, text string) error {
	if text == "" {
		text = resp.Status
	}
	err := errors.New(text)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusBadGateway:
		return errs.Wrap(errs.Unavailable, err)
	case strings.HasPrefix(strings.ToLower(text), "leader not found"):
		return errs.Wrap(errs.Unavailable, err)
	case strings.HasPrefix(text, "key not found") || strings.HasSuffix(text, "not found"):
		return errs.Wrap(errs.NotFound, err)
	case strings.Contains(text, "address exhaustion"):
		return errs.Wrap(errs.Exhausted, err)
	}
	return errs.Wrap(errs.Invalid, err)
}
