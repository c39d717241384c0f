package ovsdb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// maxMessage bounds one JSON-RPC message; a full monitor reply of a host with some
// thousand ports stays far below.
const maxMessage = 256 << 20

// session is one JSON-RPC 1.0 connection.
type session struct {
	nc         net.Conn
	inactivity time.Duration

	wmu sync.Mutex // serialises writes

	mu      sync.Mutex
	nextID  uint64
	pending map[uint64]chan reply
	err     error // why the session ended
}

type reply struct {
	result json.RawMessage
	err    error
}

type message struct {
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

func newSession(nc net.Conn, inactivity time.Duration) *session {
	return &session{nc: nc, inactivity: inactivity, pending: map[uint64]chan reply{}}
}

// close ends the session; everything that waits gets why.
func (s *session) close(why error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = why
	}
	waiting := s.pending
	s.pending = map[uint64]chan reply{}
	s.mu.Unlock()
	_ = s.nc.Close()
	for _, ch := range waiting {
		ch <- reply{err: why}
	}
}

func (s *session) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ch := make(chan reply, 1)
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return nil, s.err
	}
	s.nextID++
	id := s.nextID
	s.pending[id] = ch
	s.mu.Unlock()

	if err := s.send(map[string]any{"method": method, "params": params, "id": id}); err != nil {
		s.close(err)
		return nil, err
	}
	select {
	case r := <-ch:
		return r.result, r.err
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		return nil, ctx.Err()
	}
}

func (s *session) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if err := s.nc.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = s.nc.Write(b)
	return err
}

// read dispatches incoming messages until the connection ends. A silent connection
// is probed with an echo and given up when that stays unanswered.
func (s *session) read(updates chan<- json.RawMessage) error {
	r := &probingReader{s: s}
	limited := &io.LimitedReader{R: r, N: maxMessage}
	dec := json.NewDecoder(bufio.NewReaderSize(limited, 64<<10))
	for {
		limited.N = maxMessage
		var m message
		if err := dec.Decode(&m); err != nil {
			if limited.N <= 0 {
				err = fmt.Errorf("message longer than %d bytes", maxMessage)
			}
			s.close(err)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.err
		}
		switch {
		case m.Method == "echo":
			if err := s.send(map[string]any{"result": m.Params, "error": nil, "id": m.ID}); err != nil {
				s.close(err)
			}
		case m.Method == "update2":
			var params []json.RawMessage
			if err := json.Unmarshal(m.Params, &params); err != nil || len(params) != 2 {
				s.close(errors.New("malformed update notification"))
				continue
			}
			updates <- params[1]
		case m.Method == "":
			s.deliver(m)
		}
	}
}

func (s *session) deliver(m message) {
	var id uint64
	if json.Unmarshal(m.ID, &id) != nil {
		return // the reply to a probe
	}
	s.mu.Lock()
	ch := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if ch == nil {
		return // the caller has gone
	}
	r := reply{result: m.Result}
	if len(m.Error) > 0 && string(m.Error) != "null" {
		r.err = fmt.Errorf("server error: %s", m.Error)
	}
	ch <- r
}

// probingReader reads from the connection and sends an echo after a silent interval.
type probingReader struct{ s *session }

func (r *probingReader) Read(p []byte) (int, error) {
	for probed := false; ; probed = true {
		if err := r.s.nc.SetReadDeadline(time.Now().Add(r.s.inactivity)); err != nil {
			return 0, err
		}
		n, err := r.s.nc.Read(p)
		var ne net.Error
		if n > 0 || err == nil || !errors.As(err, &ne) || !ne.Timeout() {
			return n, err
		}
		if probed {
			return 0, fmt.Errorf("no message from the server for %s", 2*r.s.inactivity)
		}
		if err := r.s.send(map[string]any{"method": "echo", "params": []any{}, "id": "echo"}); err != nil {
			return 0, err
		}
	}
}
