package consul

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
)

// TestPlan: what becomes of comparisons and operations. A step is written as verb, key,
// and the index or session it is about; "!" marks those whose refusal is the caller's.
func TestPlan(t *testing.T) {
	k := func(n string) string { return "/" + n }
	for name, tt := range map[string]struct {
		txn      objdb.Txn
		sessions []string
		known    map[string]entry
		want     string
	}{
		"nothing":             {want: ""},
		"put":                 {txn: objdb.Txn{Then: []objdb.Op{objdb.Put(k("a"), nil)}}, want: "set a, check-session a"},
		"put, known":          {txn: objdb.Txn{Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 7}}, want: "cas a 7"},
		"put, known as none":  {txn: objdb.Txn{Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {}}, want: "cas a"},
		"put, held":           {txn: objdb.Txn{Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 7, session: "s"}}, want: "unlock a s"},
		"leased":              {txn: objdb.Txn{Then: []objdb.Op{objdb.PutLeased(k("a"), nil, 1)}}, sessions: []string{"s"}, want: "lock a s"},
		"leased, held by us":  {txn: objdb.Txn{Then: []objdb.Op{objdb.PutLeased(k("a"), nil, 1)}}, sessions: []string{"s"}, known: map[string]entry{"a": {modify: 7, session: "s"}}, want: "lock a s"},
		"leased, held":        {txn: objdb.Txn{Then: []objdb.Op{objdb.PutLeased(k("a"), nil, 1)}}, sessions: []string{"s"}, known: map[string]entry{"a": {modify: 7, session: "r"}}, want: "unlock a r, lock a s"},
		"deletions":           {txn: objdb.Txn{Then: []objdb.Op{objdb.Delete(k("a")), objdb.DeletePrefix(k("b/"))}}, want: "delete a, delete-tree b/"},
		"create":              {txn: objdb.Txn{If: []objdb.Cmp{objdb.Absent(k("a"))}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, want: "!cas a"},
		"create, leased":      {txn: objdb.Txn{If: []objdb.Cmp{objdb.Absent(k("a"))}, Then: []objdb.Op{objdb.PutLeased(k("a"), nil, 1)}}, sessions: []string{"s"}, want: "!check-not-exists a, lock a s"},
		"change":              {txn: objdb.Txn{If: []objdb.Cmp{objdb.Unchanged(objdb.KV{Key: k("a"), ModRevision: 5})}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, want: "!cas a 5, check-session a"},
		"change, known":       {txn: objdb.Txn{If: []objdb.Cmp{objdb.Unchanged(objdb.KV{Key: k("a"), ModRevision: 5})}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 5}}, want: "!cas a 5"},
		"change, held":        {txn: objdb.Txn{If: []objdb.Cmp{objdb.Unchanged(objdb.KV{Key: k("a"), ModRevision: 5})}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 5, session: "s"}}, want: "!check-index a 5, unlock a s"},
		"change and delete":   {txn: objdb.Txn{If: []objdb.Cmp{objdb.Unchanged(objdb.KV{Key: k("a"), ModRevision: 5})}, Then: []objdb.Op{objdb.Delete(k("a"))}}, want: "!check-index a 5, delete a"},
		"fence":               {txn: objdb.Txn{If: []objdb.Cmp{{Type: objdb.CmpCreate, Key: k("l"), Revision: 3}}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"l": {create: 3, modify: 4}}, want: "check-index l 4, set a, check-session a"},
		"mark":                {txn: objdb.Txn{If: []objdb.Cmp{objdb.HasValue(k("a"), []byte("1"))}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 4, value: []byte("1")}}, want: "cas a 4"},
		"mark, held":          {txn: objdb.Txn{If: []objdb.Cmp{objdb.HasValue(k("a"), []byte("1"))}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, known: map[string]entry{"a": {modify: 4, session: "s", value: []byte("1")}}, want: "check-index a 4, unlock a s"},
		"two of the same key": {txn: objdb.Txn{If: []objdb.Cmp{objdb.Absent(k("a")), objdb.Absent(k("a")), objdb.Present(k("b"))}, Then: []objdb.Op{objdb.Put(k("a"), nil)}}, want: "!check-not-exists a, !get b, !cas a"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRequest(tt.txn)
			if err != nil {
				t.Fatal(err)
			}
			copy(r.sessions, tt.sessions)
			if tt.known != nil {
				r.known = tt.known
			}
			var got []string
			for _, st := range r.plan() {
				text := fmt.Sprintf("%s %s", st.op.Verb, st.op.Key)
				if st.cmp {
					text = "!" + text
				}
				if st.op.Index != 0 {
					text += fmt.Sprint(" ", st.op.Index)
				}
				if st.op.Session != "" {
					text += " " + st.op.Session
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
