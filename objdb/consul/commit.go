package consul

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
)

// maxOps is half of what the servers take: each comparison and each put can be made to
// need one step. Only a put under a lease of a key that another lease holds takes two.
const maxOps = maxSteps / 2

// MaxOps implements objdb.Store.
func (s *Store) MaxOps() int { return maxOps }

// errRefused says that a comparison does not hold.
var errRefused = errs.New(errs.Conflict, "commit: %w", objdb.ErrCompareFailed)

// Commit implements objdb.Store.
func (s *Store) Commit(ctx context.Context, txn objdb.Txn) (int64, error) {
	if err := txn.Validate(maxOps); err != nil {
		return 0, err
	}
	r, err := newRequest(txn)
	if err != nil {
		return 0, err
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	for i, o := range r.ops {
		if o.Type == objdb.OpPut && o.Lease != 0 {
			if r.sessions[i], err = s.session(ctx, o.Lease); err != nil {
				return 0, fmt.Errorf("commit: %w", err)
			}
		}
	}
	if large(txn) {
		return s.putLarge(ctx, r.ops[0])
	}
	for _, key := range r.unread() {
		if e, ok := s.hints.get(key); ok {
			r.known[key] = e
		}
	}
	b := remote.NewBackoff()
	for try := 1; ; try++ {
		rev, again, err := s.attempt(ctx, r)
		if err == nil && !again {
			return rev, nil
		}
		if err != nil {
			return 0, err
		}
		if try > 1 && !b.Wait(ctx) {
			return 0, s.wrap(ctx.Err(), "commit")
		}
	}
}

// attempt reads what has to be known, and sends the transaction. again: nothing has
// been written because the plan was wrong; r knows better now.
func (s *Store) attempt(ctx context.Context, r *request) (rev int64, again bool, err error) {
	if err := s.read(ctx, r, r.unread()); err != nil {
		return 0, false, err
	}
	// What is known may be a hint: a comparison does not hold only if a read says so.
	if keys := r.refuted(); len(keys) > 0 {
		if err := s.read(ctx, r, keys); err != nil {
			return 0, false, err
		}
		if len(r.refuted()) > 0 {
			return 0, false, errRefused
		}
	}
	steps := r.plan()
	if len(steps) > maxSteps {
		// With every entry known a put needs one step instead of two.
		if err := s.read(ctx, r, r.puts()); err != nil {
			return 0, false, err
		}
		steps = r.plan()
	}
	if len(steps) > maxSteps {
		return 0, false, errs.New(errs.Invalid, "%s: commit: the transaction has %d operations, the servers allow %d", s.name, len(steps), maxSteps)
	}
	if len(steps) == 0 {
		rev, err = s.index(ctx)
		return rev, false, s.wrap(err, "commit")
	}
	resp, err := s.send(ctx, steps)
	if err != nil {
		return 0, false, err
	}
	if len(resp.Errors) > 0 {
		return 0, true, s.learn(ctx, r, steps, resp.Errors)
	}
	rev, err = s.settle(ctx, steps, resp.Results)
	return rev, false, err
}

// read makes keys known.
func (s *Store) read(ctx context.Context, r *request, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	found, err := s.entries(ctx, slices.Compact(keys))
	if err != nil {
		return s.wrap(err, "commit, read the keys to compare")
	}
	maps.Copy(r.known, found)
	for _, c := range r.cmps {
		if e, ok := found[c.Key]; ok && (c.Type == objdb.CmpValue || c.Type == objdb.CmpCreate) {
			s.hints.learn(c.Key, e)
		}
	}
	return nil
}

// send sends steps until they were executed or refused, as far as repeating is safe.
func (s *Store) send(ctx context.Context, steps []step) (*api.TxnResponse, error) {
	ops := make(api.TxnOps, len(steps))
	harmless := true
	for i, st := range steps {
		ops[i] = &api.TxnOp{KV: st.op}
		harmless = harmless && !st.writes()
	}
	b := remote.NewBackoff()
	for {
		var resp *api.TxnResponse
		within := commitWithin
		if harmless {
			within = answerWithin
		}
		t := s.try(ctx, within, func(ctx context.Context, c *api.Client) (err error) {
			_, resp, _, err = c.Txn().Txn(ops, consistent(ctx))
			return err
		})
		switch {
		case t.err == nil:
			return resp, nil
		case (harmless || !t.applied()) && passing(t.err) && !s.life.Over() && b.Wait(ctx):
			continue
		case t.applied() && !harmless:
			return nil, s.wrap(t.err, "commit, outcome unknown")
		}
		return nil, s.wrap(t.err, "commit")
	}
}

// learn finds out why steps were refused. It returns nil when another plan may succeed.
func (s *Store) learn(ctx context.Context, r *request, steps []step, refusals api.TxnErrors) error {
	var keys, sessions []string
	for _, refusal := range refusals {
		if strings.Contains(refusal.What, "Permission denied") {
			return errs.New(errs.Invalid, "%s: commit: %s", s.name, refusal.What)
		}
	}
	for _, refusal := range refusals {
		if refusal.OpIndex < 0 || refusal.OpIndex >= len(steps) {
			return errs.New(errs.Internal, "%s: commit: %s", s.name, refusal.What)
		}
		st := steps[refusal.OpIndex]
		if st.cmp {
			return errRefused
		}
		keys = append(keys, st.op.Key)
		if st.op.Verb == api.KVLock {
			sessions = append(sessions, st.op.Session)
		}
	}
	if err := s.read(ctx, r, keys); err != nil {
		return err
	}
	if len(r.refuted()) > 0 {
		return nil // the next attempt looks into it
	}
	slices.Sort(sessions)
	for _, id := range slices.Compact(sessions) {
		var there bool
		err := s.repeat(ctx, func(ctx context.Context, c *api.Client) error {
			info, _, err := c.Session().Info(id, consistent(ctx))
			there = info != nil
			return err
		})
		if err != nil {
			return s.wrap(err, "commit")
		}
		if !there {
			return errs.New(errs.Unavailable, "%s: commit: %w", s.name, objdb.ErrLeaseEnded)
		}
	}
	return nil
}

// settle works out the revision of a transaction that was applied, and keeps what it
// tells about keys that are compared.
func (s *Store) settle(ctx context.Context, steps []step, results api.TxnResults) (int64, error) {
	after := map[string]*api.KVPair{}
	for _, res := range results {
		if res.KV != nil {
			after[res.KV.Key] = res.KV // that of the key's last step
		}
	}
	var rev int64
	dated := false // rev surely is the transaction's own index
	deletes, puts := false, false
	for _, st := range steps {
		kv := after[st.op.Key]
		switch st.op.Verb {
		case api.KVDelete, api.KVDeleteTree:
			deletes = true
			s.hints.forget(st.op.Key, st.op.Verb == api.KVDeleteTree)
		case api.KVSet, api.KVCAS, api.KVLock, api.KVUnlock:
			puts = true
			if kv == nil {
				continue // the token may write the key and not read it
			}
			rev = max(rev, int64(kv.ModifyIndex))
			// A put of what was there already keeps its index.
			dated = dated || st.op.Verb == api.KVCAS && kv.ModifyIndex != st.op.Index
			s.hints.update(kv.Key, entry{create: kv.CreateIndex, modify: kv.ModifyIndex, session: kv.Session, value: st.op.Value})
		}
	}
	if dated || puts && !deletes && rev != 0 {
		return rev, nil
	}
	// Deletions do not tell when they happened. The index of the store is not before that.
	at, err := s.index(ctx)
	if err != nil {
		return 0, s.wrap(err, "commit, applied at an unknown revision")
	}
	return max(rev, at), nil
}
