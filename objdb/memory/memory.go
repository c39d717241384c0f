// Package memory is a cluster store that lives in this process, for unit tests. It
// keeps the whole contract of package objdb, and can be told to fail.
//
// Several clients of one store, as several daemons would be, come from Connect:
//
//	a := memory.New()
//	b := a.Connect()
package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// maxOps is what etcd takes by default, so that code which splits its transactions
// is exercised by unit tests too.
const maxOps = 128

// Fault makes one Commit fail: with Before nothing is applied, with After the
// transaction is applied and its caller is told the error all the same.
type Fault struct{ Before, After error }

// Store is one client of an in-memory store.
type Store struct {
	d *data

	mu     sync.Mutex
	leases map[objdb.LeaseID]*lease // granted by this client
	closed chan struct{}
	once   sync.Once
	wg     sync.WaitGroup
}

var _ objdb.Store = (*Store)(nil)

// data is what all clients of one store share.
type data struct {
	mu       sync.Mutex
	rev      int64
	lastID   objdb.LeaseID
	keys     map[string]record
	leases   map[objdb.LeaseID]map[string]struct{} // keys of each live lease
	watchers map[*watcher]struct{}
	hook     func(objdb.Txn) Fault
}

type record struct {
	kv    objdb.KV
	lease objdb.LeaseID
}

// New makes an empty store and a client of it.
func New() *Store {
	d := &data{
		rev:      1,
		keys:     map[string]record{},
		leases:   map[objdb.LeaseID]map[string]struct{}{},
		watchers: map[*watcher]struct{}{},
	}
	return newClient(d)
}

func newClient(d *data) *Store {
	return &Store{d: d, leases: map[objdb.LeaseID]*lease{}, closed: make(chan struct{})}
}

// Connect makes another client of the same store.
func (s *Store) Connect() *Store { return newClient(s.d) }

// OnCommit sets the function that is asked before every Commit of any client how it
// is to fail; nil takes it away. It runs outside the store's lock and may itself use
// the store, for instance to let a rival's write come first.
func (s *Store) OnCommit(hook func(objdb.Txn) Fault) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.hook = hook
}

// Resync makes every watch deliver a new snapshot, as after a compaction.
func (s *Store) Resync() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for w := range s.d.watchers {
		w.reset(s.d.snapshot(w.prefix))
	}
}

// Get implements objdb.Store.
func (s *Store) Get(ctx context.Context, key string) (objdb.KV, error) {
	if err := s.ready(ctx); err != nil {
		return objdb.KV{}, fmt.Errorf("get %s: %w", key, err)
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	r, ok := s.d.keys[key]
	if !ok {
		return objdb.KV{}, errs.New(errs.NotFound, "key not found: %s", key)
	}
	return clone(r.kv), nil
}

// List implements objdb.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]objdb.KV, int64, error) {
	if err := s.ready(ctx); err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", prefix, err)
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.d.list(prefix), s.d.rev, nil
}

// Commit implements objdb.Store.
func (s *Store) Commit(ctx context.Context, txn objdb.Txn) (int64, error) {
	if err := txn.Validate(maxOps); err != nil {
		return 0, err
	}
	if err := s.ready(ctx); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	s.d.mu.Lock()
	hook := s.d.hook
	s.d.mu.Unlock()
	var fault Fault
	if hook != nil {
		fault = hook(txn)
	}
	if fault.Before != nil {
		return 0, fault.Before
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	rev, err := s.d.commit(txn)
	if err == nil && fault.After != nil {
		return 0, fault.After
	}
	return rev, err
}

// MaxOps implements objdb.Store.
func (s *Store) MaxOps() int { return maxOps }

// Health implements objdb.Store.
func (s *Store) Health(ctx context.Context) error { return s.ready(ctx) }

// Close implements objdb.Store. The leases of this client end after their TTL, as
// those of a crashed process do.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.closed)
		for _, l := range s.leases {
			l.abandon()
		}
	})
	s.wg.Wait()
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return errs.New(errs.Unavailable, "the store client is closed")
	default:
		return nil
	}
}

func clone(kv objdb.KV) objdb.KV {
	kv.Value = bytes.Clone(kv.Value)
	return kv
}

func (d *data) list(prefix string) []objdb.KV {
	var kvs []objdb.KV
	for key, r := range d.keys {
		if strings.HasPrefix(key, prefix) {
			kvs = append(kvs, clone(r.kv))
		}
	}
	slices.SortFunc(kvs, func(a, b objdb.KV) int { return strings.Compare(a.Key, b.Key) })
	return kvs
}

func (d *data) snapshot(prefix string) objdb.Batch {
	b := objdb.Batch{Snapshot: true, Revision: d.rev}
	for _, kv := range d.list(prefix) {
		b.Events = append(b.Events, objdb.Event{KV: kv})
	}
	return b
}

// commit runs with d.mu held.
func (d *data) commit(txn objdb.Txn) (int64, error) {
	for _, c := range txn.If {
		if !d.holds(c) {
			return 0, errs.New(errs.Conflict, "commit: key %s: %w", c.Key, objdb.ErrCompareFailed)
		}
	}
	for _, op := range txn.Then {
		if op.Lease != 0 && d.leases[op.Lease] == nil {
			return 0, errs.New(errs.Unavailable, "commit: key %s: %w", op.Key, objdb.ErrLeaseEnded)
		}
	}
	rev := d.rev + 1
	var events []objdb.Event
	for _, op := range txn.Then {
		switch op.Type {
		case objdb.OpPut:
			events = append(events, d.put(op, rev))
		case objdb.OpDelete:
			if _, ok := d.keys[op.Key]; ok {
				events = append(events, d.remove(op.Key, rev))
			}
		case objdb.OpDeletePrefix:
			for _, kv := range d.list(op.Key) {
				events = append(events, d.remove(kv.Key, rev))
			}
		}
	}
	if len(events) > 0 {
		d.rev = rev
		d.publish(events)
	}
	return d.rev, nil
}

func (d *data) holds(c objdb.Cmp) bool {
	r, ok := d.keys[c.Key]
	switch c.Type {
	case objdb.CmpAbsent:
		return !ok
	case objdb.CmpPresent:
		return ok
	case objdb.CmpModRevision:
		return ok && r.kv.ModRevision == c.Revision
	case objdb.CmpCreate:
		return ok && r.kv.CreateRevision == c.Revision
	case objdb.CmpValue:
		return ok && bytes.Equal(r.kv.Value, c.Value)
	}
	return false
}

func (d *data) put(op objdb.Op, rev int64) objdb.Event {
	old, ok := d.keys[op.Key]
	kv := objdb.KV{Key: op.Key, Value: bytes.Clone(op.Value), CreateRevision: rev, ModRevision: rev}
	if ok {
		kv.CreateRevision = old.kv.CreateRevision
		delete(d.leases[old.lease], op.Key)
	}
	if op.Lease != 0 {
		d.leases[op.Lease][op.Key] = struct{}{}
	}
	d.keys[op.Key] = record{kv: kv, lease: op.Lease}
	return objdb.Event{KV: kv}
}

func (d *data) remove(key string, rev int64) objdb.Event {
	delete(d.leases[d.keys[key].lease], key)
	delete(d.keys, key)
	return objdb.Event{KV: objdb.KV{Key: key, ModRevision: rev}, Deleted: true}
}

// end removes a lease and, at one revision, its keys. It reports whether it existed.
func (d *data) end(id objdb.LeaseID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys, ok := d.leases[id]
	if !ok {
		return false
	}
	var events []objdb.Event
	for key := range keys {
		events = append(events, objdb.Event{KV: objdb.KV{Key: key, ModRevision: d.rev + 1}, Deleted: true})
		delete(d.keys, key)
	}
	delete(d.leases, id)
	if len(events) > 0 {
		d.rev++
		d.publish(events)
	}
	return true
}

func (d *data) grant() objdb.LeaseID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastID++
	d.leases[d.lastID] = map[string]struct{}{}
	return d.lastID
}

func (d *data) publish(events []objdb.Event) {
	for w := range d.watchers {
		b := objdb.Batch{Revision: d.rev}
		for _, ev := range events {
			if strings.HasPrefix(ev.KV.Key, w.prefix) {
				b.Events = append(b.Events, objdb.Event{KV: clone(ev.KV), Deleted: ev.Deleted})
			}
		}
		if len(b.Events) > 0 {
			w.add(b)
		}
	}
}

// Expire ends a lease as if its owner had not been heard for its whole TTL.
func (s *Store) Expire(id objdb.LeaseID) {
	s.d.end(id)
	s.mu.Lock()
	l := s.leases[id]
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// ExpireAll ends every lease that this client has granted.
func (s *Store) ExpireAll() {
	s.mu.Lock()
	ids := make([]objdb.LeaseID, 0, len(s.leases))
	for id := range s.leases {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.Expire(id)
	}
}

// Grant implements objdb.Store.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (objdb.Lease, error) {
	if ttl <= 0 {
		return nil, errs.New(errs.Invalid, "lease of %s: the time to live must be positive", ttl)
	}
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("grant lease: %w", err)
	}
	l := &lease{s: s, id: s.d.grant(), ttl: ttl, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l.id] = l
	return l, nil
}
