// Package objdb is the only door to the cluster store. It defines what Contiv needs
// of a key-value store and nothing more; the packages below it provide that contract
// on etcd v3 (objdb/etcd), on an etcd inside the process (objdb/embedded), on Consul
// (objdb/consul) and on a map (objdb/memory, for unit tests). One suite, objdb/contract,
// holds them all to it; objdb/open opens the one that a daemon's options name.
//
// Keys are slash-separated paths that begin with "/" on every backend. Values are
// opaque bytes, at most MaxValue long.
//
// # Reading
//
// Everything a daemon knows comes from Watch: its first batch is a snapshot of the
// prefix, the following ones are the changes after that snapshot, in the order of
// their revisions, each revision whole. When the store can no longer deliver the
// changes (compaction, a long outage) Watch re-lists by itself and sends another
// snapshot, so a consumer that treats a snapshot as "this and nothing else exists"
// is right in every case and never misses a change. A store without history (Consul)
// makes one batch of changes that follow each other quickly, without what later ones of
// them undid.
//
// # Writing
//
// Commit applies a list of operations if all comparisons hold, or nothing at all.
// Leadership supplies the comparison (Fence) that makes a former leader's writes fail.
package objdb

import (
	"context"
	"errors"
	"time"
)

// MaxValue is the largest value every backend accepts, in bytes (Consul's limit).
const MaxValue = 512 << 10

// ErrCompareFailed is returned (wrapped) by Commit when a comparison did not hold.
// Nothing has been written then.
var ErrCompareFailed = errors.New("the store has changed since it was read")

// ErrLeaseEnded is returned (wrapped) by Commit when it was to put a key under a lease
// that does not exist any more. Nothing has been written then.
var ErrLeaseEnded = errors.New("the lease has ended")

// KV is one key with its value as of ModRevision.
type KV struct {
	Key   string
	Value []byte
	// CreateRevision and ModRevision are the store revisions of the key's creation
	// and last change; they only grow.
	CreateRevision, ModRevision int64
}

// OpType is what an Op does.
type OpType uint8

// The operations of a transaction.
const (
	OpPut          OpType = iota + 1 // set Key to Value
	OpDelete                         // remove Key; a missing key is no error
	OpDeletePrefix                   // remove every key that begins with Key
)

// Op is one write of a transaction. Two operations of one transaction must not
// touch the same key.
type Op struct {
	Type  OpType
	Key   string
	Value []byte
	Lease LeaseID // with OpPut: the key goes when the lease ends; zero = none
}

// Put, Delete and DeletePrefix build operations.
func Put(key string, value []byte) Op { return Op{Type: OpPut, Key: key, Value: value} }

// PutLeased sets a key that disappears with its lease.
func PutLeased(key string, value []byte, lease LeaseID) Op {
	return Op{Type: OpPut, Key: key, Value: value, Lease: lease}
}

// Delete removes a key.
func Delete(key string) Op { return Op{Type: OpDelete, Key: key} }

// DeletePrefix removes every key that begins with prefix.
func DeletePrefix(prefix string) Op { return Op{Type: OpDeletePrefix, Key: prefix} }

// CmpType is what a Cmp compares.
type CmpType uint8

// The comparisons of a transaction.
const (
	CmpAbsent      CmpType = iota + 1 // Key does not exist
	CmpPresent                        // Key exists
	CmpModRevision                    // Key's last change was at Revision
	CmpCreate                         // Key was created at Revision and still is that incarnation
	CmpValue                          // Key exists with exactly Value
)

// Cmp is one condition of a transaction.
type Cmp struct {
	Type     CmpType
	Key      string
	Revision int64
	Value    []byte
}

// Absent holds while key does not exist.
func Absent(key string) Cmp { return Cmp{Type: CmpAbsent, Key: key} }

// Present holds while key exists.
func Present(key string) Cmp { return Cmp{Type: CmpPresent, Key: key} }

// Unchanged holds while kv's key has not been written since kv was read.
func Unchanged(kv KV) Cmp { return Cmp{Type: CmpModRevision, Key: kv.Key, Revision: kv.ModRevision} }

// Txn is a transaction: if every If holds, every Then is applied, at one revision.
type Txn struct {
	If   []Cmp
	Then []Op
}

// Event is one change of a key. In a snapshot every event is a put.
type Event struct {
	KV      KV   // for a deletion: Key and ModRevision (of the deletion) only
	Deleted bool // the key is gone, by deletion or because its lease ended
}

// Batch is one delivery of Watch.
type Batch struct {
	// Snapshot: Events are all existing keys under the prefix at Revision, sorted by
	// key; any other key of the prefix no longer exists.
	Snapshot bool
	// Revision is the store's revision after this batch. It grows from batch to batch,
	// unless the store has lost data.
	Revision int64
	Events   []Event
}

// LeaseID identifies a lease of a Store; zero is no lease.
type LeaseID int64

// Lease ends, and deletes its keys, when its owner no longer keeps it alive.
type Lease interface {
	ID() LeaseID
	// Done is closed when the lease has ended, or may have ended because no refresh
	// succeeded for a whole TTL.
	Done() <-chan struct{}
	// Release ends the lease now; its keys are deleted.
	Release(ctx context.Context) error
}

// Store is a cluster store. All methods are safe for concurrent use. Errors have a kind of
// utils/errs: NotFound, Conflict (ErrCompareFailed), Unavailable, Timeout, Invalid. A
// method blocks no longer than its context, and retries after a lost connection or a leader
// election of the store as far as that is safe; Commit returns Unavailable if it cannot
// know whether it was applied.
type Store interface {
	// Get reads one key, linearizably.
	Get(ctx context.Context, key string) (KV, error)
	// List reads every key that begins with prefix at one revision, sorted by key, and
	// returns that revision. No keys is not an error.
	List(ctx context.Context, prefix string) ([]KV, int64, error)
	// Commit applies a transaction and returns its revision.
	Commit(ctx context.Context, txn Txn) (int64, error)
	// MaxOps is how many comparisons, and how many operations, one transaction holds.
	MaxOps() int
	// Watch delivers prefix as described above until ctx ends or the Store is closed;
	// then the channel is closed. It never ends for another reason: it waits while the
	// store is unavailable.
	Watch(ctx context.Context, prefix string) <-chan Batch
	// Grant creates a lease that this process keeps alive. A store may round ttl up
	// (etcd: to seconds, Consul: to 10 s).
	Grant(ctx context.Context, ttl time.Duration) (Lease, error)
	// Health returns nil when the store answers, or why it does not, in one line.
	Health(ctx context.Context) error
	// Close ends the watches, the requests under way, and the refreshing of leases; the
	// leases end after their time to live.
	Close() error
}

// Drainer is implemented by a Store that serves other processes while it is open.
type Drainer interface {
	// Drain prepares for Close: another process takes over the serving, if one can. The
	// Store remains usable. It blocks only for a moment.
	Drain()
}

// Membership is implemented by a Store that consists of members, of which most must be there.
type Membership interface {
	// Members lists them, and which accept no connections.
	Members(ctx context.Context) ([]Member, error)
}

// Member is a member of a store.
type Member struct {
	Name string
	Err  string // why it does not answer; empty: it does
	// Leads: it is the leader. Behind is how many entries of the leader's log it has not applied;
	// 0 also if that is not known.
	Leads  bool
	Behind uint64
	Alarms []string // NOSPACE, CORRUPT
}

// Leadership is a lock that is held.
type Leadership interface {
	// Fence is a comparison that holds only during this term.
	Fence() Cmp
	// Lost is closed when the term is over or can no longer be confirmed.
	Lost() <-chan struct{}
	// Resign releases the lock immediately.
	Resign(ctx context.Context) error
}
