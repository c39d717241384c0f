package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

func testGet(t *testing.T, e *env) {
	_, err := e.store.Get(e.ctx, e.key("a"))
	wantKind(t, "Get of a missing key", err, errs.NotFound)

	created := e.put(t, "a", "1")
	if kv := e.get(t, "a"); string(kv.Value) != "1" || kv.CreateRevision != created || kv.ModRevision != created || kv.Key != e.key("a") {
		t.Errorf("after the first put at %d: %+v", created, kv)
	}
	changed := e.put(t, "a", "2")
	if kv := e.get(t, "a"); string(kv.Value) != "2" || kv.CreateRevision != created || kv.ModRevision != changed || changed <= created {
		t.Errorf("after puts at %d and %d: %+v", created, changed, kv)
	}
	e.commit(t, objdb.Txn{Then: []objdb.Op{objdb.Delete(e.key("a"))}})
	again := e.put(t, "a", "3")
	if kv := e.get(t, "a"); kv.CreateRevision != again || kv.ModRevision != again {
		t.Errorf("a new incarnation at %d: %+v", again, kv)
	}
	e.put(t, "empty", "")
	if kv := e.get(t, "empty"); len(kv.Value) != 0 {
		t.Errorf("empty value became %q", kv.Value)
	}
}

func testList(t *testing.T, e *env) {
	kvs, before, err := e.store.List(e.ctx, e.root)
	if err != nil || len(kvs) != 0 || before < 1 {
		t.Fatalf("List of nothing: %v at %d, %v", kvs, before, err)
	}
	for _, name := range []string{"b", "a", "c/1", "c/2", "c-", "d"} {
		e.put(t, name, name)
	}
	for prefix, want := range map[string]string{"": "a b c- c/1 c/2 d", "c/": "c/1 c/2", "c": "c- c/1 c/2", "x": "", "a": "a"} {
		kvs, rev, err := e.store.List(e.ctx, e.key(prefix))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kv := range kvs {
			name := kv.Key[len(e.root):]
			if string(kv.Value) != name || kv.ModRevision > rev || kv.ModRevision <= before {
				t.Errorf("List(%q) at %d holds %+v", prefix, rev, kv)
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("List(%q) = %v, want %s", prefix, got, want)
		}
	}
}

func testCompare(t *testing.T, e *env) {
	e.put(t, "k", "old")
	first := e.get(t, "k")
	e.put(t, "k", "v")
	now := e.get(t, "k")
	e.put(t, "empty", "")
	e.put(t, "reborn", "1")
	dead := e.get(t, "reborn")
	e.commit(t, objdb.Txn{Then: []objdb.Op{objdb.Delete(e.key("reborn"))}})
	e.put(t, "reborn", "1")

	for _, tt := range []struct {
		name  string
		cmps  []objdb.Cmp
		holds bool
	}{
		{"none", nil, true},
		{"absent", []objdb.Cmp{objdb.Absent(e.key("x"))}, true},
		{"absent, but there", []objdb.Cmp{objdb.Absent(e.key("k"))}, false},
		{"present", []objdb.Cmp{objdb.Present(e.key("k"))}, true},
		{"present, with empty value", []objdb.Cmp{objdb.Present(e.key("empty"))}, true},
		{"present, but not there", []objdb.Cmp{objdb.Present(e.key("x"))}, false},
		{"unchanged", []objdb.Cmp{objdb.Unchanged(now)}, true},
		{"unchanged, but changed", []objdb.Cmp{objdb.Unchanged(first)}, false},
		{"created", []objdb.Cmp{objdb.Created(first)}, true},
		{"created, but again", []objdb.Cmp{objdb.Created(dead)}, false},
		{"created, but not there", []objdb.Cmp{{Type: objdb.CmpCreate, Key: e.key("x"), Revision: 1}}, false},
		{"value", []objdb.Cmp{objdb.HasValue(e.key("k"), []byte("v"))}, true},
		{"empty value", []objdb.Cmp{objdb.HasValue(e.key("empty"), nil)}, true},
		{"value of another", []objdb.Cmp{objdb.HasValue(e.key("k"), []byte("w"))}, false},
		{"value of a missing key", []objdb.Cmp{objdb.HasValue(e.key("x"), nil)}, false},
		{"all hold", []objdb.Cmp{objdb.Absent(e.key("x")), objdb.Unchanged(now)}, true},
		{"one does not", []objdb.Cmp{objdb.Absent(e.key("x")), objdb.Absent(e.key("k"))}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.store.Commit(e.ctx, objdb.Txn{If: tt.cmps})
			if tt.holds {
				if err != nil {
					t.Errorf("Commit: %v", err)
				}
				return
			}
			wantKind(t, "Commit", err, errs.Conflict)
			if !errors.Is(err, objdb.ErrCompareFailed) {
				t.Errorf("error %v does not wrap ErrCompareFailed", err)
			}
		})
	}
}

func testOperations(t *testing.T, e *env) {
	e.commit(t, objdb.Txn{Then: []objdb.Op{
		objdb.Put(e.key("a"), []byte("1")), objdb.Put(e.key("dir/x"), []byte("1")), objdb.Put(e.key("dir/y"), []byte("1")), objdb.Put(e.key("dirt"), []byte("1")),
	}})
	before := e.get(t, "a").ModRevision
	rev := e.commit(t, objdb.Txn{Then: []objdb.Op{
		objdb.Put(e.key("a"), []byte("2")), objdb.Put(e.key("b"), []byte("2")),
		objdb.DeletePrefix(e.key("dir/")), objdb.Delete(e.key("nothing")), objdb.DeletePrefix(e.key("none/")),
	}})
	e.wantContent(t, map[string]string{"a": "2", "b": "2", "dirt": "1"})
	for _, name := range []string{"a", "b"} {
		if kv := e.get(t, name); kv.ModRevision != rev || rev <= before {
			t.Errorf("%s has revision %d, the transaction %d, the one before %d", name, kv.ModRevision, rev, before)
		}
	}
	e.commit(t, objdb.Txn{Then: []objdb.Op{objdb.DeletePrefix(e.root)}})
	e.wantContent(t, map[string]string{})
}

func testAllOrNothing(t *testing.T, e *env) {
	e.put(t, "a", "1")
	_, rev, err := e.store.List(e.ctx, e.root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.store.Commit(e.ctx, objdb.Txn{
		If:   []objdb.Cmp{objdb.Present(e.key("a")), objdb.Present(e.key("gone"))},
		Then: []objdb.Op{objdb.Put(e.key("a"), []byte("2")), objdb.Put(e.key("b"), []byte("2")), objdb.DeletePrefix(e.key("c"))},
	})
	wantKind(t, "Commit", err, errs.Conflict)
	e.wantContent(t, map[string]string{"a": "1"})
	if kv := e.get(t, "a"); kv.ModRevision > rev {
		t.Errorf("a refused transaction moved the key to revision %d", kv.ModRevision)
	}
}

func testInvalid(t *testing.T, e *env) {
	put := func(keys ...string) (ops []objdb.Op) {
		for _, k := range keys {
			ops = append(ops, objdb.Put(k, nil))
		}
		return ops
	}
	many := make([]objdb.Op, e.store.MaxOps()+1)
	manyCmp := make([]objdb.Cmp, e.store.MaxOps()+1)
	for i := range many {
		many[i] = objdb.Put(e.key(strconv.Itoa(i)), nil)
		manyCmp[i] = objdb.Absent(e.key(strconv.Itoa(i)))
	}
	large := bytes.Repeat([]byte{'x'}, objdb.MaxValue)
	for name, txn := range map[string]objdb.Txn{
		"key without slash":        {Then: put("a")},
		"empty key":                {Then: put("")},
		"long key":                 {Then: put("/" + strings.Repeat("k", objdb.MaxKey))},
		"same key twice":           {Then: put(e.key("a"), e.key("a"))},
		"put and delete":           {Then: []objdb.Op{objdb.Put(e.key("a"), nil), objdb.Delete(e.key("a"))}},
		"put under deleted prefix": {Then: []objdb.Op{objdb.Put(e.key("d/a"), nil), objdb.DeletePrefix(e.key("d/"))}},
		"prefix in prefix":         {Then: []objdb.Op{objdb.DeletePrefix(e.key("d/e/")), objdb.DeletePrefix(e.key("d/"))}},
		"unknown operation":        {Then: []objdb.Op{{Key: e.key("a")}}},
		"unknown comparison":       {If: []objdb.Cmp{{Key: e.key("a")}}},
		"revision 0":               {If: []objdb.Cmp{objdb.Unchanged(objdb.KV{Key: e.key("a")})}},
		"comparison without slash": {If: []objdb.Cmp{objdb.Absent("a")}},
		"too many operations":      {Then: many},
		"too many comparisons":     {If: manyCmp},
		"value too large":          {Then: []objdb.Op{objdb.Put(e.key("a"), append(large, 'x'))}},
		"sum too large":            {Then: []objdb.Op{objdb.Put(e.key("a"), large), objdb.Put(e.key("b"), large)}},
	} {
		_, err := e.store.Commit(e.ctx, txn)
		wantKind(t, name, err, errs.Invalid)
	}
	e.wantContent(t, map[string]string{})
	_, err := e.store.Grant(e.ctx, 0)
	wantKind(t, "lease of no time", err, errs.Invalid)
}

func testLimits(t *testing.T, e *env) {
	e.put(t, "large", strings.Repeat("x", objdb.MaxValue))
	if kv := e.get(t, "large"); len(kv.Value) != objdb.MaxValue {
		t.Errorf("value of %d bytes came back as %d", objdb.MaxValue, len(kv.Value))
	}
	var txn objdb.Txn
	for i := range e.store.MaxOps() {
		key := e.key(fmt.Sprintf("n/%04d", i))
		txn.If = append(txn.If, objdb.Absent(key))
		txn.Then = append(txn.Then, objdb.Put(key, []byte("v")))
	}
	e.commit(t, txn)
	kvs, _, err := e.store.List(e.ctx, e.key("n/"))
	if err != nil || len(kvs) != e.store.MaxOps() {
		t.Errorf("after a transaction of %d operations there are %d keys, %v", e.store.MaxOps(), len(kvs), err)
	}
}

// testConcurrentCAS lets clients increment one counter.
func testConcurrentCAS(t *testing.T, e *env) {
	const clients, each = 6, 15
	e.put(t, "counter", "0")
	key := e.key("counter")
	increment := func(s objdb.Store) error {
		for {
			kv, err := s.Get(e.ctx, key)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(kv.Value))
			if err != nil {
				return err
			}
			_, err = s.Commit(e.ctx, objdb.Txn{If: []objdb.Cmp{objdb.Unchanged(kv)}, Then: []objdb.Op{objdb.Put(key, []byte(strconv.Itoa(n+1)))}})
			if !errors.Is(err, objdb.ErrCompareFailed) {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for range clients {
		s := e.open(t)
		wg.Go(func() {
			for range each {
				if err := increment(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := string(e.get(t, "counter").Value); got != strconv.Itoa(clients*each) {
		t.Errorf("counter = %s, want %d", got, clients*each)
	}
}

// testModel compares random transactions with a plain map.
func testModel(t *testing.T, e *env) {
	names := []string{"a", "b", "c/1", "c/2"}
	name := rapid.SampledFrom(names)
	rapid.Check(t, func(t *rapid.T) {
		if _, err := e.store.Commit(e.ctx, objdb.Txn{Then: []objdb.Op{objdb.DeletePrefix(e.root)}}); err != nil {
			t.Fatal(err)
		}
		model := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(t, "transactions") {
			var txn objdb.Txn
			holds := true
			for _, n := range rapid.SliceOfN(name, 0, 2).Draw(t, "compared") {
				v, there := model[n]
				switch rapid.IntRange(0, 2).Draw(t, "comparison") {
				case 0:
					txn.If, holds = append(txn.If, objdb.Absent(e.key(n))), holds && !there
				case 1:
					txn.If, holds = append(txn.If, objdb.Present(e.key(n))), holds && there
				case 2:
					w := rapid.SampledFrom([]string{"0", "1", v}).Draw(t, "value")
					txn.If, holds = append(txn.If, objdb.HasValue(e.key(n), []byte(w))), holds && there && v == w
				}
			}
			after := maps.Clone(model)
			for _, n := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(t, "written") {
				if rapid.Bool().Draw(t, "delete") {
					txn.Then = append(txn.Then, objdb.Delete(e.key(n)))
					delete(after, n)
					continue
				}
				v := rapid.SampledFrom([]string{"0", "1"}).Draw(t, "new value")
				txn.Then = append(txn.Then, objdb.Put(e.key(n), []byte(v)))
				after[n] = v
			}
			_, err := e.store.Commit(e.ctx, txn)
			if holds != (err == nil) || err != nil && !errs.Is(err, errs.Conflict) {
				t.Fatalf("Commit(%v) on %v: %v", txn, model, err)
			}
			if holds {
				model = after
			}
		}
		kvs, _, err := e.store.List(e.ctx, e.root)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, kv := range kvs {
			got[kv.Key[len(e.root):]] = string(kv.Value)
		}
		if !maps.Equal(got, model) {
			t.Fatalf("content %v, want %v", got, model)
		}
	})
}

func testContext(t *testing.T, e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.store.Get(ctx, e.key("a"))
	wantKind(t, "Get after cancel", err, errs.Unavailable)
	_, _, err = e.store.List(ctx, e.root)
	wantKind(t, "List after cancel", err, errs.Unavailable)
	_, err = e.store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(e.key("a"), nil)}})
	wantKind(t, "Commit after cancel", err, errs.Unavailable)
	_, err = e.store.Grant(ctx, 1)
	wantKind(t, "Grant after cancel", err, errs.Unavailable)
	if err := e.store.Health(ctx); err == nil {
		t.Error("Health after cancel: no error")
	}
	late, cancel := context.WithTimeout(e.ctx, 0)
	defer cancel()
	_, err = e.store.Get(late, e.key("a"))
	wantKind(t, "Get after the deadline", err, errs.Timeout)

	s := e.open(t)
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	_, err = s.Get(e.ctx, e.key("a"))
	wantKind(t, "Get after Close", err, errs.Unavailable)
}

func testHealth(t *testing.T, e *env) {
	if err := e.store.Health(e.ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
}
