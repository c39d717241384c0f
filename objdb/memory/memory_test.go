package memory_test

import (
	"errors"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/utils/errs"
)

func TestContract(t *testing.T) {
	store := memory.New()
	contract.Run(t, func(t *testing.T) objdb.Store {
		s := store.Connect()
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestFaults(t *testing.T) {
	s := memory.New()
	defer s.Close()
	away := errs.New(errs.Unavailable, "away")
	put := func(key string) error {
		_, err := s.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, nil)}})
		return err
	}
	there := func(key string) bool {
		_, err := s.Get(t.Context(), key)
		return err == nil
	}
	s.OnCommit(func(objdb.Txn) memory.Fault { return memory.Fault{Before: away} })
	if err := put("/before"); !errors.Is(err, away) || there("/before") {
		t.Errorf("fault before: error %v, applied %t", err, there("/before"))
	}
	s.Connect().OnCommit(func(objdb.Txn) memory.Fault { return memory.Fault{After: away} })
	if err := put("/after"); !errors.Is(err, away) || !there("/after") {
		t.Errorf("fault after: error %v, applied %t", err, there("/after"))
	}
	s.OnCommit(nil)
	if err := put("/none"); err != nil {
		t.Error(err)
	}
}

func TestResync(t *testing.T) {
	s := memory.New()
	defer s.Close()
	w := s.Watch(t.Context(), "/")
	var r contract.Replica
	for range 2 {
		if err := r.Apply(<-w); err != nil {
			t.Fatal(err)
		}
		s.Resync()
	}
	if r.Snapshots != 2 {
		t.Errorf("%d snapshots, want 2", r.Snapshots)
	}
}

func TestExpire(t *testing.T) {
	s := memory.New()
	defer s.Close()
	l, err := s.Grant(t.Context(), 1e15)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.PutLeased("/a", nil, l.ID())}}); err != nil {
		t.Fatal(err)
	}
	s.ExpireAll()
	<-l.Done()
	if _, err := s.Get(t.Context(), "/a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("Get = %v, want NotFound", err)
	}
}
