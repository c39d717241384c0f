package intent

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// tx is a transaction being planned: the overlays of the model's tables, and how to undo
// the planned changes step by step.
type tx struct {
	*model
	undo     []func()
	prefixes []string // store prefixes to delete
}

// onUndo registers how to undo the last step.
func (x *tx) onUndo(f func()) { x.undo = append(x.undo, f) }

// mark is a place to roll back to.
func (x *tx) mark() int { return len(x.undo) }

// rollback undoes everything planned since mark.
func (x *tx) rollback(mark int) {
	for _, f := range slices.Backward(x.undo[mark:]) {
		f()
	}
	x.undo = x.undo[:mark]
}

// size is an upper bound of the operations and comparisons planned so far.
func (x *tx) size() int {
	n := len(x.prefixes)
	for _, t := range x.all {
		n += t.pending()
	}
	return n
}

// dropPrefix plans the deletion of everything under a store prefix in one operation. The
// rows there must be deleted from their tables too.
func (x *tx) dropPrefix(prefix string) {
	x.prefixes = append(x.prefixes, prefix)
	x.onUndo(func() { x.prefixes = x.prefixes[:len(x.prefixes)-1] })
}

// operations returns the store transaction.
func (x *tx) operations() (objdb.Txn, error) {
	var txn objdb.Txn
	for _, t := range x.all {
		if err := t.operations(&txn); err != nil {
			return txn, errs.Wrap(errs.Internal, err)
		}
	}
	kept := txn.Then[:0]
	for _, op := range txn.Then {
		covered := slices.ContainsFunc(x.prefixes, func(p string) bool { return strings.HasPrefix(op.Key, p) })
		switch reason, bad := x.unreadable[op.Key]; {
		case covered && op.Type == objdb.OpPut:
			return txn, errs.New(errs.Internal, "%s is both dropped and written", op.Key)
		case covered:
			continue
		case bad:
			return txn, errs.New(errs.Internal, "the store holds something unreadable at %s (%s): remove it first", op.Key, reason)
		}
		kept = append(kept, op)
	}
	txn.Then = kept
	for _, p := range x.prefixes {
		txn.Then = append(txn.Then, objdb.DeletePrefix(p))
	}
	return txn, nil
}

// merge makes the planned changes visible to everybody.
func (x *tx) merge(rev int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.all {
		t.merge(rev)
	}
	x.changed.Broadcast()
	x.undo, x.prefixes = nil, nil
}

// Claims: a table row records the owner, an index records what is free. The two change
// together, here.

// claimAddress claims a free address for an owner.
func (x *tx) claimAddress(net, addr, owner string) error {
	s := x.spaces[net]
	a, ok := parseAddr(addr)
	if s == nil || !ok || !s.Take(a) {
		return errs.New(errs.Internal, "claim %s in network %s for %s: it is not free", addr, net, owner)
	}
	x.onUndo(func() { s.Free(a) })
	x.addrs.put(x, claimKey{net, addr}, &state.AddressClaim{Owner: owner})
	return nil
}

// freeAddress ends owner's claim of an address, if it has one.
func (x *tx) freeAddress(net, addr, owner string) {
	k := claimKey{net, addr}
	if claim, ok := x.addrs.get(k); !ok || claim.Owner != owner {
		return
	}
	x.addrs.del(x, k)
	if s := x.spaces[net]; s != nil {
		if a, ok := parseAddr(addr); ok && s.Free(a) {
			x.onUndo(func() { s.Take(a) })
		}
	}
}

// claimTag claims a free tag for an owner.
func (x *tx) claimTag(pool string, tag int, owner string) error {
	p := x.pools[pool]
	if !p.Take(tag) {
		return errs.New(errs.Internal, "claim %s %d for %s: it is not free", pool, tag, owner)
	}
	x.onUndo(func() { p.Free(tag) })
	x.tags.put(x, tagKey{pool, tag}, &state.TagClaim{Owner: owner})
	return nil
}

// freeTag ends owner's claim of a tag, if it has one.
func (x *tx) freeTag(pool string, tag int, owner string) {
	k := tagKey{pool, tag}
	if claim, ok := x.tags.get(k); !ok || claim.Owner != owner {
		return
	}
	x.tags.del(x, k)
	if p := x.pools[pool]; p.Free(tag) {
		x.onUndo(func() { p.Take(tag) })
	}
}
