package consul

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
)

func pair(key string, create, modify uint64) *api.KVPair {
	return &api.KVPair{Key: key, Value: []byte(key), CreateIndex: create, ModifyIndex: modify}
}

func put(key string, create, modify int64) objdb.Event {
	return objdb.Event{KV: objdb.KV{Key: "/" + key, Value: []byte(key), CreateRevision: create, ModRevision: modify}}
}

func gone(key string, modify int64) objdb.Event {
	return objdb.Event{KV: objdb.KV{Key: "/" + key, ModRevision: modify}, Deleted: true}
}

// TestAdvance: what a list after {a: 2/5, b: 6/6} at 6 is reported as.
func TestAdvance(t *testing.T) {
	a, b := pair("a", 2, 5), pair("b", 6, 6)
	for name, tt := range map[string]struct {
		list listing
		want objdb.Batch
	}{
		"the same":                {listing{api.KVPairs{a, b}, 6}, objdb.Batch{}},
		"the same, index forward": {listing{api.KVPairs{a, b}, 9}, objdb.Batch{}},
		"the same, index back":    {listing{api.KVPairs{a, b}, 4}, objdb.Batch{}},
		"put":                     {listing{api.KVPairs{pair("a", 2, 8), b}, 8}, objdb.Batch{Revision: 8, Events: []objdb.Event{put("a", 2, 8)}}},
		"several, in order": {
			listing{api.KVPairs{pair("a", 2, 9), pair("b", 6, 8), pair("c", 7, 7)}, 9},
			objdb.Batch{Revision: 9, Events: []objdb.Event{put("c", 7, 7), put("b", 6, 8), put("a", 2, 9)}},
		},
		"delete":            {listing{api.KVPairs{b}, 8}, objdb.Batch{Revision: 8, Events: []objdb.Event{gone("a", 8)}}},
		"rename":            {listing{api.KVPairs{b, pair("c", 8, 8)}, 8}, objdb.Batch{Revision: 8, Events: []objdb.Event{gone("a", 8), put("c", 8, 8)}}},
		"another of a name": {listing{api.KVPairs{pair("a", 9, 9), b}, 9}, objdb.Batch{Revision: 9, Events: []objdb.Event{gone("a", 8), put("a", 9, 9)}}},
		"deleted, and its index forgotten": {
			listing{api.KVPairs{a}, 5}, objdb.Batch{Snapshot: true, Revision: 5, Events: []objdb.Event{put("a", 2, 5)}},
		},
		"restored to less": {
			listing{api.KVPairs{pair("a", 2, 4)}, 20}, objdb.Batch{Snapshot: true, Revision: 20, Events: []objdb.Event{put("a", 2, 4)}},
		},
		"another history, as long": {
			listing{api.KVPairs{pair("a", 2, 5), pair("b", 3, 6)}, 6},
			objdb.Batch{Snapshot: true, Revision: 6, Events: []objdb.Event{put("a", 2, 5), put("b", 3, 6)}},
		},
		"empty, reset": {listing{nil, 1}, objdb.Batch{Snapshot: true, Revision: 1, Events: []objdb.Event{}}},
	} {
		t.Run(name, func(t *testing.T) {
			var r replica
			first := r.advance(listing{api.KVPairs{a, b}, 6})
			want := objdb.Batch{Snapshot: true, Revision: 6, Events: []objdb.Event{put("a", 2, 5), put("b", 6, 6)}}
			if diff := cmp.Diff(want, first); diff != "" {
				t.Fatalf("first batch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, r.advance(tt.list)); diff != "" {
				t.Errorf("batch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdvanceModel: whatever happens between two lists, a consumer ends up with the
// second one, and every batch keeps the contract.
func TestAdvanceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			source   replica
			consumer contract.Replica
			index    = uint64(1)
			store    = map[string]*api.KVPair{}
			first    = true
		)
		for range rapid.IntRange(1, 12).Draw(t, "lists") {
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				index += rapid.Uint64Range(1, 3).Draw(t, "step")
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
				switch old := store[key]; {
				case old == nil:
					store[key] = &api.KVPair{Key: key, CreateIndex: index, ModifyIndex: index, Value: []byte{byte(index)}}
				case rapid.Bool().Draw(t, "delete"):
					delete(store, key)
				default:
					store[key] = &api.KVPair{Key: key, CreateIndex: old.CreateIndex, ModifyIndex: index, Value: []byte{byte(index)}}
				}
			}
			l := listing{index: int64(index)}
			for _, key := range slices.Sorted(maps.Keys(store)) {
				l.pairs = append(l.pairs, store[key])
			}
			b := source.advance(l)
			if b.Revision == 0 {
				continue
			}
			if err := consumer.Apply(b); err != nil {
				t.Fatal(err)
			}
			if b.Snapshot != first {
				t.Fatalf("snapshot %v, first %v", b.Snapshot, first)
			}
			first = false
			want := map[string]string{}
			for key, p := range store {
				want["/"+key] = string(p.Value)
			}
			if diff := cmp.Diff(want, consumer.Content("")); diff != "" {
				t.Fatalf("content (-want +got):\n%s", diff)
			}
		}
	})
}
