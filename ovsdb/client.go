package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// ErrNotConnected is returned by Transact while there is no connection.
var ErrNotConnected = errors.New("not connected to the Open vSwitch database")

// Config says where the database is and what of it to keep.
type Config struct {
	Target   string // unix:PATH or tcp:HOST:PORT
	Database string // default Open_vSwitch
	// Monitor lists the columns to keep by table; every row of these tables is kept.
	Monitor map[string][]string
	// OnChange, if set, is called for every change, in order, from one goroutine; it
	// must not block. After a reconnect it sees the differences to the cache as it was.
	OnChange func([]Change)
	// Inactivity is how long the connection may be silent before it is probed with
	// an echo, and again before it is given up. Default 5 s.
	Inactivity time.Duration
	Log        logrus.FieldLogger
}

// Client is a connection to one database, with a cache. Create it with New.
type Client struct {
	cfg Config

	mu      sync.Mutex
	tables  map[string]map[UUID]Row
	synced  bool          // the cache is the server's content, up to the last update
	changed signal.Signal // broadcast when tables or synced change
	conn    *session
	lastErr error
}

// New makes a client; nothing happens before Run.
func New(cfg Config) *Client {
	if cfg.Database == "" {
		cfg.Database = "Open_vSwitch"
	}
	if cfg.Inactivity <= 0 {
		cfg.Inactivity = 5 * time.Second
	}
	if cfg.Log == nil {
		l := logrus.New()
		l.SetLevel(logrus.PanicLevel)
		cfg.Log = l
	}
	return &Client{cfg: cfg, tables: map[string]map[UUID]Row{}}
}

// Run connects and stays connected until ctx ends, which is the only way it returns.
func (c *Client) Run(ctx context.Context) error {
	again := retry.New(50*time.Millisecond, 2*time.Second)
	for ctx.Err() == nil {
		wasSynced, err := c.runOnce(ctx)
		c.mu.Lock()
		c.synced, c.conn = false, nil
		said := c.lastErr != nil && c.lastErr.Error() == err.Error()
		c.lastErr = err
		c.broadcast()
		c.mu.Unlock()
		if ctx.Err() != nil {
			break
		}
		if !said || wasSynced {
			c.cfg.Log.WithError(err).WithField("target", c.cfg.Target).Warn("no connection to the Open vSwitch database; is ovsdb-server running? retrying")
		}
		if wasSynced {
			again.Reset()
		}
		again.Wait(ctx)
	}
	return ctx.Err()
}

// runOnce serves one connection and reports whether its cache was complete at some time.
func (c *Client) runOnce(ctx context.Context) (synced bool, err error) {
	network, addr, ok := strings.Cut(c.cfg.Target, ":")
	if !ok || (network != "unix" && network != "tcp") {
		return false, errs.New(errs.Invalid, "ovsdb target %q: expected unix:PATH or tcp:HOST:PORT", c.cfg.Target)
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return false, err
	}
	s := newSession(nc, c.cfg.Inactivity)
	stop := context.AfterFunc(ctx, func() { s.close(ctx.Err()) })
	defer stop()

	readErr := make(chan error, 1)
	updates := make(chan json.RawMessage)
	go func() { readErr <- s.read(updates) }()
	defer func() {
		s.close(errors.New("connection closed after an error"))
		for {
			select {
			case <-updates:
			case <-readErr:
				return
			}
		}
	}()

	sch, initial, err := c.subscribe(ctx, s, updates)
	if err != nil {
		return false, err
	}
	if err := c.load(s, sch, initial); err != nil {
		return false, err
	}
	for {
		select {
		case raw := <-updates:
			if err := c.update(sch, raw); err != nil {
				return true, err
			}
		case err := <-readErr:
			readErr <- err
			return true, err
		}
	}
}

// subscribe reads the schema and starts the monitor. Updates cannot arrive before
// the monitor's reply, so none is lost while it waits.
func (c *Client) subscribe(ctx context.Context, s *session, _ <-chan json.RawMessage) (schema, json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	raw, err := s.call(ctx, "get_schema", []any{c.cfg.Database})
	if err != nil {
		return nil, nil, fmt.Errorf("get_schema: %w", err)
	}
	sch, err := parseSchema(raw)
	if err != nil {
		return nil, nil, err
	}
	requests := map[string]any{}
	for table, columns := range c.cfg.Monitor {
		known := []string{}
		for _, col := range columns {
			if _, ok := sch[table][col]; ok { // an older schema may lack a column
				known = append(known, col)
			}
		}
		requests[table] = []any{map[string]any{"columns": known}}
	}
	initial, err := s.call(ctx, "monitor_cond", []any{c.cfg.Database, "contiv", requests})
	if err != nil {
		return nil, nil, fmt.Errorf("monitor_cond: %w", err)
	}
	return sch, initial, nil
}

// load replaces the cache and reports what differs from before.
func (c *Client) load(s *session, sch schema, initial json.RawMessage) error {
	fresh := map[string]map[UUID]Row{}
	changes, err := apply(fresh, sch, initial)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.tables
	for i, ch := range changes {
		changes[i].Old = old[ch.Table][ch.UUID]
	}
	for table, rows := range old {
		for id, row := range rows {
			if _, still := fresh[table][id]; !still {
				changes = append(changes, Change{Table: table, UUID: id, Old: row})
			}
		}
	}
	c.tables, c.synced, c.conn, c.lastErr = fresh, true, s, nil
	c.broadcast()
	c.mu.Unlock()
	if c.cfg.OnChange != nil {
		c.cfg.OnChange(changes)
	}
	return nil
}

func (c *Client) update(sch schema, raw json.RawMessage) error {
	c.mu.Lock()
	changes, err := apply(c.tables, sch, raw)
	if err == nil {
		c.broadcast()
	}
	c.mu.Unlock()
	if err == nil && c.cfg.OnChange != nil {
		c.cfg.OnChange(changes)
	}
	return err
}

func (c *Client) broadcast() {
	c.changed.Broadcast()
}

// View calls f with the cache and reports whether the cache is current. Without a
// connection f sees the last known content.
func (c *Client) View(f func(View)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(View{c.tables})
	return c.synced
}

// Wait returns when ready, called with a current cache, is true, or with ctx's error.
func (c *Client) Wait(ctx context.Context, ready func(View) bool) error {
	for {
		c.mu.Lock()
		ok := c.synced && ready(View{c.tables})
		changed, why := c.changed.Next(), c.lastErr
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			if why != nil {
				return errs.New(errs.Unavailable, "ovsdb %s: %w (%w)", c.cfg.Target, ctx.Err(), why)
			}
			return fmt.Errorf("wait for ovsdb %s: %w", c.cfg.Target, ctx.Err())
		case <-changed:
		}
	}
}

// Connected returns nil while the cache is current, or why it is not.
func (c *Client) Connected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.synced {
		return nil
	}
	if c.lastErr != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, c.lastErr)
	}
	return ErrNotConnected
}

// Transact runs the operations as one transaction. An error of an operation is a
// *TransactError; then nothing was changed. Unavailable means that the connection
// was lost and the outcome is unknown.
func (c *Client) Transact(ctx context.Context, ops ...Operation) ([]Result, error) {
	c.mu.Lock()
	s := c.conn
	c.mu.Unlock()
	if s == nil {
		return nil, errs.Wrap(errs.Unavailable, c.Connected())
	}
	params := []any{c.cfg.Database}
	for _, op := range ops {
		w, err := op.wire()
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err)
		}
		params = append(params, w)
	}
	raw, err := s.call(ctx, "transact", params)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, fmt.Errorf("ovsdb transact: %w", err))
	}
	return results(raw, ops)
}

// Result is what one operation returned.
type Result struct {
	Count int    // rows changed by update, mutate, delete
	UUID  UUID   // of the row inserted
	Error string // empty when it succeeded
}

// TransactError says which operation failed and why (RFC 7047 section 5.2).
type TransactError struct {
	Op, Table      string // empty when the commit as a whole failed
	Index          int
	Err, Details   string
	OperationCount int
}

func (e *TransactError) Error() string {
	where := "commit"
	if e.Index < e.OperationCount {
		where = fmt.Sprintf("operation %d (%s %s)", e.Index+1, e.Op, e.Table)
	}
	if e.Details == "" {
		return fmt.Sprintf("ovsdb %s: %s", where, e.Err)
	}
	return fmt.Sprintf("ovsdb %s: %s: %s", where, e.Err, e.Details)
}

func results(raw json.RawMessage, ops []Operation) ([]Result, error) {
	var list []*struct {
		Count   int             `json:"count"`
		UUID    json.RawMessage `json:"uuid"`
		Error   string          `json:"error"`
		Details string          `json:"details"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read the result of a transaction: %w", err)
	}
	out := make([]Result, 0, len(list))
	for i, r := range list {
		if r == nil { // not executed, because an earlier one failed
			continue
		}
		if r.Error != "" {
			te := &TransactError{Index: i, Err: r.Error, Details: r.Details, OperationCount: len(ops)}
			if i < len(ops) {
				te.Op, te.Table = ops[i].op, ops[i].table
			}
			return nil, te
		}
		res := Result{Count: r.Count}
		if r.UUID != nil {
			if v, err := decode(r.UUID); err == nil {
				res.UUID, _ = v.(UUID)
			}
		}
		out = append(out, res)
	}
	return out, nil
}
