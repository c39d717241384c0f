package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
)

// MaxOps implements objdb.Store.
func (s *Store) MaxOps() int { return s.maxOps }

// Get implements objdb.Store.
func (s *Store) Get(ctx context.Context, key string) (objdb.KV, error) {
	if err := objdb.CheckKey(key); err != nil {
		return objdb.KV{}, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	resp, err := s.read(ctx, key)
	if err != nil {
		return objdb.KV{}, s.wrap(err, "get "+key)
	}
	if len(resp.Kvs) == 0 {
		return objdb.KV{}, errs.New(errs.NotFound, "key not found: %s", key)
	}
	return toKV(resp.Kvs[0]), nil
}

// List implements objdb.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]objdb.KV, int64, error) {
	if err := objdb.CheckKey(prefix); err != nil {
		return nil, 0, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	kvs, head, err := s.list(ctx, prefix)
	if err != nil {
		return nil, 0, s.wrap(err, "list "+prefix)
	}
	return kvs, head.Revision, nil
}

// header is what one list or verification knows of the store as a whole.
type header struct {
	Revision int64
	Cluster  uint64
}

// list reads a prefix page by page, all pages at the revision of the first.
func (s *Store) list(ctx context.Context, prefix string) ([]objdb.KV, header, error) {
	for {
		kvs, head, err := s.pages(ctx, prefix)
		if errors.Is(err, rpctypes.ErrCompacted) {
			continue // the revision went away between two pages: start over
		}
		return kvs, head, err
	}
}

func (s *Store) pages(ctx context.Context, prefix string) (kvs []objdb.KV, head header, err error) {
	end := clientv3.GetPrefixRangeEnd(prefix)
	from, to := prefix, end
	for {
		// Pages after the first need no quorum: a revision never changes.
		opts := []clientv3.OpOption{clientv3.WithRange(to), clientv3.WithLimit(s.page)}
		if head.Revision != 0 {
			opts = append(opts, clientv3.WithRev(head.Revision))
		}
		resp, err := s.read(ctx, from, opts...)
		if err != nil {
			return nil, header{}, err
		}
		if head.Revision == 0 {
			head = header{Revision: resp.Header.Revision, Cluster: resp.Header.ClusterId}
			if resp.More {
				kvs = make([]objdb.KV, 0, resp.Count)
			}
		}
		page := len(kvs)
		for _, kv := range resp.Kvs {
			kvs = append(kvs, toKV(kv))
		}
		switch {
		case resp.More:
			first, last := kvs[page].Key, kvs[len(kvs)-1].Key
			from, to = last+"\x00", pageEnd(prefix, first, last)
		case to != end:
			from, to = to, end
		default:
			return kvs, head, nil
		}
	}
}

// pageEnd is how far to ask for the page after one from first to last. With each page the
// server counts all that is left, which takes as long as reading: when a page was within one
// directory below the prefix, the next one is too, or ends there.
func pageEnd(prefix, first, last string) string {
	n := strings.IndexByte(last[len(prefix):], '/') + 1
	if directory := last[:len(prefix)+n]; n > 0 && strings.HasPrefix(first, directory) {
		return clientv3.GetPrefixRangeEnd(directory)
	}
	return clientv3.GetPrefixRangeEnd(prefix)
}

// read is one range request, repeated while the cluster is not able to answer.
func (s *Store) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	b := remote.NewBackoff()
	for {
		resp, err := s.c.Get(ctx, key, opts...)
		if err == nil || !passing(err) || s.life.Over() || !b.Wait(ctx) {
			return resp, err
		}
	}
}

// Commit implements objdb.Store.
func (s *Store) Commit(ctx context.Context, txn objdb.Txn) (int64, error) {
	if err := txn.Validate(s.maxOps); err != nil {
		return 0, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	cmps, ops := translate(txn)
	b := remote.NewBackoff()
	for {
		resp, err := s.txn(ctx, cmps, ops)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			return 0, errs.New(errs.Conflict, "commit: %w", objdb.ErrCompareFailed)
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return 0, s.wrap(err, "commit")
		}
		unknown := kind(err) == errs.Timeout || kind(err) == errs.Unavailable && !notApplied(err)
		harmless := notApplied(err) || len(ops) == 0 && unknown
		switch {
		case harmless && !s.life.Over() && b.Wait(ctx):
			continue
		case unknown && ctx.Err() == nil:
			// Our own time limit is over, not the caller's.
			return 0, errs.New(errs.Unavailable, "%s: commit, outcome unknown: %w", s.name, err)
		case unknown:
			return 0, s.wrap(err, "commit, outcome unknown")
		}
		return 0, s.wrap(err, "commit")
	}
}

// txn is one try of a transaction.
func (s *Store) txn(ctx context.Context, cmps []clientv3.Cmp, ops []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, commitWithin)
	defer cancel()
	// A member that has lost its cluster says so at once instead of letting us wait.
	return s.c.Txn(clientv3.WithRequireLeader(ctx)).If(cmps...).Then(ops...).Commit()
}

func translate(txn objdb.Txn) ([]clientv3.Cmp, []clientv3.Op) {
	cmps := make([]clientv3.Cmp, 0, len(txn.If))
	for _, c := range txn.If {
		var cmp clientv3.Cmp
		switch c.Type {
		case objdb.CmpAbsent:
			cmp = clientv3.Compare(clientv3.CreateRevision(c.Key), "=", 0)
		case objdb.CmpPresent:
			cmp = clientv3.Compare(clientv3.CreateRevision(c.Key), ">", 0)
		case objdb.CmpModRevision:
			cmp = clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Revision)
		case objdb.CmpCreate:
			cmp = clientv3.Compare(clientv3.CreateRevision(c.Key), "=", c.Revision)
		case objdb.CmpValue:
			cmp = clientv3.Compare(clientv3.Value(c.Key), "=", string(c.Value))
		}
		cmps = append(cmps, cmp)
	}
	ops := make([]clientv3.Op, 0, len(txn.Then))
	for _, o := range txn.Then {
		var op clientv3.Op
		switch o.Type {
		case objdb.OpPut:
			op = clientv3.OpPut(o.Key, string(o.Value), clientv3.WithLease(clientv3.LeaseID(o.Lease)))
		case objdb.OpDelete:
			op = clientv3.OpDelete(o.Key)
		case objdb.OpDeletePrefix:
			op = clientv3.OpDelete(o.Key, clientv3.WithPrefix())
		}
		ops = append(ops, op)
	}
	return cmps, ops
}

// Health implements objdb.Store. A watch that the servers refuse is no health either.
func (s *Store) Health(ctx context.Context) error {
	ctx, over := s.life.Bound(ctx)
	defer over()
	_, err := s.c.Get(clientv3.WithRequireLeader(ctx), "/", clientv3.WithCountOnly())
	if err != nil && code(err) != codes.PermissionDenied { // who may read some prefixes only gets an answer all the same
		return s.wrap(err, "does not answer")
	}
	return s.refusals.Err()
}

func toKV(kv *mvccpb.KeyValue) objdb.KV {
	return objdb.KV{
		Key: string(kv.Key), Value: kv.Value,
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
	}
}
