package auth

import (
	"context"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// tries is how often a change of a record is repeated when another one was faster.
const tries = 8

// store returns the store if it is open.
func (s *Service) store() (objdb.Store, error) {
	if store := s.cfg.Store(); store != nil {
		return store, nil
	}
	return nil, errs.New(errs.Unavailable, "the store is not open yet: try again")
}

// commit writes, and waits until this netmaster knows of it.
func (s *Service) commit(ctx context.Context, txn objdb.Txn) error {
	store, err := s.store()
	if err != nil {
		return err
	}
	revision, err := store.Commit(ctx, txn)
	if err != nil {
		return err
	}
	late := time.NewTimer(appliedWithin)
	defer late.Stop()
	for {
		at, changed := s.dir.at()
		if at >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			s.cfg.Log.Warn("a change of users is written, but its watch is late")
			return nil
		case <-ctx.Done():
			return nil // it is written
		}
	}
}

// put encodes a record for a transaction.
func (s *Service) put(key string, record any) (objdb.Op, error) {
	value, err := s.keys.encode(key, record)
	return objdb.Put(key, value), err
}

// change reads a record, lets edit change it, and writes it, unless another change was
// faster; then it begins again. A record that cannot be read counts as missing.
func change[T any](ctx context.Context, s *Service, key string, edit func(record *T, exists bool) error) (T, error) {
	var record T
	store, err := s.store()
	if err != nil {
		return record, err
	}
	for range tries {
		record = *new(T)
		exists, guard := false, objdb.Absent(key)
		kv, err := store.Get(ctx, key)
		switch {
		case err == nil:
			guard = objdb.Unchanged(kv)
			if found, err := decode[T](s.keys, key, kv.Value); err == nil {
				record, exists = found, true
			}
		case !errs.Is(err, errs.NotFound):
			return record, err
		}
		if err := edit(&record, exists); err != nil {
			return record, err
		}
		op, err := s.put(key, record)
		if err != nil {
			return record, err
		}
		err = s.commit(ctx, objdb.Txn{If: []objdb.Cmp{guard}, Then: []objdb.Op{op}})
		if !errs.Is(err, errs.Conflict) {
			return record, err
		}
	}
	return record, errs.New(errs.Conflict, "others are changing the same thing: try again")
}
