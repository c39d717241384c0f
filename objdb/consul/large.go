package consul

import (
	"bytes"
	"context"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
)

// largeValue is from where on a value may not fit into a transaction of 512 KiB, where
// it is written in base64.
const largeValue = 512<<10*3/4 - 4<<10

// large reports whether a transaction has to, and can, go another way.
func large(txn objdb.Txn) bool {
	return len(txn.If) == 0 && len(txn.Then) == 1 && txn.Then[0].Type == objdb.OpPut &&
		txn.Then[0].Lease == 0 && len(txn.Then[0].Value) > largeValue
}

// putLarge puts one permanent key with the request that carries its value as it is.
// That request can do what one step of a transaction can; the key is read first to
// know which.
func (s *Store) putLarge(ctx context.Context, o objdb.Op) (int64, error) {
	b := remote.NewBackoff()
	for {
		before, err := s.entry(ctx, o.Key)
		if err != nil {
			return 0, err
		}
		if before.exists() && before.session == "" && bytes.Equal(before.value, o.Value) {
			return int64(before.modify), nil
		}
		var done bool
		t := s.try(ctx, commitWithin, func(ctx context.Context, c *api.Client) (err error) {
			pair := &api.KVPair{Key: o.Key, Value: o.Value, ModifyIndex: before.modify, Session: before.session}
			q := (&api.WriteOptions{}).WithContext(ctx)
			if before.session != "" {
				done, _, err = c.KV().Release(pair, q)
			} else {
				done, _, err = c.KV().CAS(pair, q)
			}
			return err
		})
		switch {
		case t.err == nil && done:
			after, err := s.entry(ctx, o.Key)
			if err != nil {
				return 0, err
			}
			if after.modify > before.modify {
				return int64(after.modify), nil
			}
			rev, err := s.index(ctx) // it is gone already
			return rev, s.wrap(err, "commit, applied at an unknown revision")
		case t.err == nil, !t.applied() && passing(t.err):
			if !b.Wait(ctx) {
				return 0, s.wrap(ctx.Err(), "commit")
			}
		case t.applied():
			return 0, s.wrap(t.err, "commit, outcome unknown")
		default:
			return 0, s.wrap(t.err, "commit")
		}
	}
}

func (s *Store) entry(ctx context.Context, key string) (entry, error) {
	found, err := s.entries(ctx, []string{key})
	return found[key], s.wrap(err, "commit, read what was written")
}
