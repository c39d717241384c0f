package consul

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// probe is a key that nobody makes. Reading it tells the index of the store.
const probe = "contiv.io/none"

// wire returns a key, or prefix, as Consul knows it.
func wire(key string) (string, error) {
	if err := objdb.CheckKey(key); err != nil {
		return "", err
	}
	if !utf8.ValidString(key) {
		return "", errs.New(errs.Invalid, "key %q is not valid UTF-8", key)
	}
	return key[1:], nil
}

// entry is a key at the time it was read; the zero entry is a key that did not exist.
// At one modify index create, session and value never change.
type entry struct {
	create, modify uint64
	session        string // that holds the key
	value          []byte
}

func (e entry) exists() bool { return e.modify != 0 }

func consistent(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

// entries reads keys, given in Consul's form, 64 at a time.
func (s *Store) entries(ctx context.Context, keys []string) (map[string]entry, error) {
	out := make(map[string]entry, len(keys))
	for part := range slices.Chunk(keys, maxSteps) {
		ops := make(api.TxnOps, len(part))
		for i, key := range part {
			ops[i] = &api.TxnOp{KV: &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key}}
		}
		var resp *api.TxnResponse
		err := s.repeat(ctx, func(ctx context.Context, c *api.Client) (err error) {
			_, resp, _, err = c.Txn().Txn(ops, consistent(ctx))
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case len(resp.Errors) > 0:
			return nil, errs.New(errs.Invalid, "%s", resp.Errors[0].What)
		case len(resp.Results) != len(part):
			// Results that the token must not see are left out.
			return nil, errs.New(errs.Invalid, "the token is not permitted to read all of %s", strings.Join(part, ", "))
		}
		for _, r := range resp.Results {
			out[r.KV.Key] = entry{create: r.KV.CreateIndex, modify: r.KV.ModifyIndex, session: r.KV.Session, value: r.KV.Value}
		}
	}
	return out, nil
}

// Get implements objdb.Store.
func (s *Store) Get(ctx context.Context, key string) (objdb.KV, error) {
	name, err := wire(key)
	if err != nil {
		return objdb.KV{}, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	found, err := s.entries(ctx, []string{name})
	if err != nil {
		return objdb.KV{}, s.wrap(err, "get "+key)
	}
	e := found[name]
	if !e.exists() {
		return objdb.KV{}, errs.New(errs.NotFound, "key not found: %s", key)
	}
	return objdb.KV{Key: key, Value: e.value, CreateRevision: int64(e.create), ModRevision: int64(e.modify)}, nil
}

// List implements objdb.Store. The revision is that of the last change under prefix.
func (s *Store) List(ctx context.Context, prefix string) ([]objdb.KV, int64, error) {
	name, err := wire(prefix)
	if err != nil {
		return nil, 0, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	var l listing
	err = s.repeat(ctx, func(ctx context.Context, c *api.Client) (err error) {
		l, err = list(c, name, consistent(ctx))
		return err
	})
	if err != nil {
		return nil, 0, s.wrap(err, "list "+prefix)
	}
	kvs := make([]objdb.KV, len(l.pairs))
	for i, p := range l.pairs {
		kvs[i] = toKV(p)
	}
	return kvs, l.index, nil
}

// listing is all keys under a prefix, sorted, and the index of that.
type listing struct {
	pairs api.KVPairs
	index int64
}

func list(c *api.Client, prefix string, q *api.QueryOptions) (listing, error) {
	pairs, meta, err := c.KV().List(prefix, q)
	if err != nil {
		return listing{}, err
	}
	if meta.ResultsFilteredByACLs {
		// Half a list would pass for deletions of the rest.
		return listing{}, errs.New(errs.Invalid, "the token is not permitted to read all of %s", prefix)
	}
	return listing{pairs: pairs, index: int64(max(meta.LastIndex, 1))}, nil
}

// toKV converts a pair. Consul gives an empty value as null.
func toKV(p *api.KVPair) objdb.KV {
	return objdb.KV{Key: "/" + p.Key, Value: p.Value, CreateRevision: int64(p.CreateIndex), ModRevision: int64(p.ModifyIndex)}
}

// index reads the index of the newest change of any key.
func (s *Store) index(ctx context.Context) (int64, error) {
	var at int64
	err := s.repeat(ctx, func(ctx context.Context, c *api.Client) (err error) {
		at, err = indexOf(ctx, c)
		return err
	})
	return at, err
}

func indexOf(ctx context.Context, c *api.Client) (int64, error) {
	_, meta, err := c.KV().Get(probe, consistent(ctx))
	if err != nil {
		return 0, err
	}
	return int64(max(meta.LastIndex, 1)), nil
}

// Health implements objdb.Store: one of the endpoints has to answer, and none refuse a watch.
func (s *Store) Health(ctx context.Context) error {
	ctx, over := s.life.Bound(ctx)
	defer over()
	var err error
	for range s.clients {
		t := s.try(ctx, min(answerWithin, 2*time.Second), func(ctx context.Context, c *api.Client) error {
			_, err := indexOf(ctx, c)
			return err
		})
		if err = t.err; err == nil {
			return s.refusals.Err()
		}
	}
	return s.wrap(err, "does not answer")
}
