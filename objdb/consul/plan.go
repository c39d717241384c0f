package consul

import (
	"bytes"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// maxSteps is how many operations the servers take in one transaction.
const maxSteps = 64

// request is a transaction on its way to the servers, with keys in Consul's form.
type request struct {
	cmps     []objdb.Cmp
	ops      []objdb.Op
	sessions []string // per operation: the lease it puts under, or empty

	// known holds the keys that had to be read, or are hinted at: what the plan
	// assumes of them is part of the plan, so that an entry may be out of date.
	known map[string]entry
}

// step is one operation of a transaction as the servers execute it, in order.
type step struct {
	op *api.KVTxnOp
	// cmp: a refusal means that a comparison of the caller does not hold. Otherwise it
	// means that the plan has assumed something of the key that is not so.
	cmp bool
}

func newRequest(txn objdb.Txn) (*request, error) {
	r := &request{known: map[string]entry{}, sessions: make([]string, len(txn.Then))}
	for _, c := range txn.If {
		key, err := wire(c.Key)
		if err != nil {
			return nil, err
		}
		c.Key = key
		r.cmps = append(r.cmps, c)
	}
	for _, o := range txn.Then {
		key, err := wire(o.Key)
		if err != nil {
			return nil, err
		}
		if key == "" && o.Type != objdb.OpDeletePrefix {
			return nil, errs.New(errs.Invalid, "key %q is not a valid key in Consul", o.Key)
		}
		o.Key = key
		r.ops = append(r.ops, o)
	}
	return r, nil
}

// unread lists the keys whose entries the comparisons need and nobody knows.
func (r *request) unread() []string {
	var keys []string
	for _, c := range r.cmps {
		if _, ok := r.known[c.Key]; !ok && (c.Type == objdb.CmpValue || c.Type == objdb.CmpCreate) {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// puts lists the keys that are put and whose entries nobody knows.
func (r *request) puts() []string {
	var keys []string
	for _, o := range r.ops {
		if _, ok := r.known[o.Key]; !ok && o.Type == objdb.OpPut {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// refuted returns the keys with a comparison that does not hold for what is known.
func (r *request) refuted() []string {
	var keys []string
	for _, c := range r.cmps {
		e, ok := r.known[c.Key]
		if !ok {
			continue
		}
		holds := true
		switch c.Type {
		case objdb.CmpValue:
			holds = e.exists() && bytes.Equal(e.value, c.Value)
		case objdb.CmpCreate:
			holds = e.exists() && e.create == uint64(c.Revision)
		case objdb.CmpModRevision:
			holds = e.modify == uint64(c.Revision)
		case objdb.CmpAbsent:
			holds = !e.exists()
		case objdb.CmpPresent:
			holds = e.exists()
		}
		if !holds {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// plan translates the request. All comparisons come first, except those that are part
// of the put of the same key.
func (r *request) plan() []step {
	var steps []step
	add := func(cmp bool, op api.KVTxnOp) { steps = append(steps, step{op: &op, cmp: cmp}) }

	// Which puts can carry a comparison: key → the index to compare with, 0 for a missing key.
	carries := map[string]objdb.Cmp{}
	permanent := map[string]bool{}
	for i, o := range r.ops {
		permanent[o.Key] = o.Type == objdb.OpPut && r.sessions[i] == ""
	}
	for _, c := range r.cmps {
		_, taken := carries[c.Key]
		if !taken && permanent[c.Key] && (c.Type == objdb.CmpAbsent || c.Type == objdb.CmpModRevision) {
			carries[c.Key] = c
			continue
		}
		switch c.Type {
		case objdb.CmpAbsent:
			add(true, api.KVTxnOp{Verb: api.KVCheckNotExists, Key: c.Key})
		case objdb.CmpPresent:
			add(true, api.KVTxnOp{Verb: api.KVGet, Key: c.Key})
		case objdb.CmpModRevision:
			add(true, api.KVTxnOp{Verb: api.KVCheckIndex, Key: c.Key, Index: uint64(c.Revision)})
		case objdb.CmpValue, objdb.CmpCreate:
			if e := r.known[c.Key]; !permanent[c.Key] || e.session != "" || taken {
				add(false, api.KVTxnOp{Verb: api.KVCheckIndex, Key: c.Key, Index: e.modify})
			} // else: the put below says the same
		}
	}
	for i, o := range r.ops {
		switch o.Type {
		case objdb.OpDelete:
			add(false, api.KVTxnOp{Verb: api.KVDelete, Key: o.Key})
		case objdb.OpDeletePrefix:
			add(false, api.KVTxnOp{Verb: api.KVDeleteTree, Key: o.Key})
		case objdb.OpPut:
			e, read := r.known[o.Key]
			if id := r.sessions[i]; id != "" {
				if e.session != "" && e.session != id {
					add(false, api.KVTxnOp{Verb: api.KVUnlock, Key: o.Key, Value: o.Value, Session: e.session})
				}
				add(false, api.KVTxnOp{Verb: api.KVLock, Key: o.Key, Value: o.Value, Session: id})
				continue
			}
			c, carried := carries[o.Key]
			if read && e.session != "" {
				if carried {
					add(true, api.KVTxnOp{Verb: api.KVCheckIndex, Key: o.Key, Index: uint64(c.Revision)})
				}
				add(false, api.KVTxnOp{Verb: api.KVUnlock, Key: o.Key, Value: o.Value, Session: e.session})
				continue
			}
			switch {
			case carried:
				add(true, api.KVTxnOp{Verb: api.KVCAS, Key: o.Key, Value: o.Value, Index: uint64(c.Revision)})
			case read:
				// At this index nobody holds the key.
				add(false, api.KVTxnOp{Verb: api.KVCAS, Key: o.Key, Value: o.Value, Index: e.modify})
			default:
				add(false, api.KVTxnOp{Verb: api.KVSet, Key: o.Key, Value: o.Value})
			}
			if !read && c.Type != objdb.CmpAbsent { // a key that is new is nobody's
				add(false, api.KVTxnOp{Verb: api.KVCheckSession, Key: o.Key})
			}
		}
	}
	return steps
}

// writes reports whether a step changes the store.
func (st step) writes() bool {
	switch st.op.Verb {
	case api.KVSet, api.KVCAS, api.KVLock, api.KVUnlock, api.KVDelete, api.KVDeleteTree:
		return true
	}
	return false
}
