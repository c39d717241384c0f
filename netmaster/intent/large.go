package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// A change that is larger than a store transaction is first written in pieces under keys
// that nobody else reads. Then one small transaction decides it. From there on it is
// carried out completely: by this leader or, if it cannot, by the next one before anything
// else. Until it is decided nothing has happened, and the pieces are removed if it fails.
// So the change is made as a whole or not at all; agents see its parts in the order of the
// pieces.
const (
	stagedRoot = state.OperRoot + "netmaster/staged/"
	decidedKey = state.OperRoot + "netmaster/decided"
)

// pieceBytes limits the values in one piece, well below the limit of a store's value (512
// KiB).
const pieceBytes = 128 << 10

// piece is a part of a large change that fits into one transaction.
type piece struct {
	Ops []stagedOp `json:"ops"`
	cmp []objdb.Cmp
}

// stagedOp is the stored form of an operation.
type stagedOp struct {
	Op    objdb.OpType `json:"op"`
	Key   string       `json:"key"`
	Value []byte       `json:"value,omitempty"`
}

func (p piece) ops() []objdb.Op {
	ops := make([]objdb.Op, len(p.Ops))
	for i, s := range p.Ops {
		ops[i] = objdb.Op{Type: s.Op, Key: s.Key, Value: s.Value}
	}
	return ops
}

// bytesOf is the approximate size of a transaction.
func bytesOf(txn objdb.Txn) int {
	n := 0
	for _, op := range txn.Then {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

func stagedKey(i int) string { return fmt.Sprintf("%s%08d", stagedRoot, i) }

// cut splits a transaction into pieces of at most room operations.
func cut(txn objdb.Txn, room int) []piece {
	absent := make(map[string]objdb.Cmp, len(txn.If))
	for _, cmp := range txn.If {
		absent[cmp.Key] = cmp
	}
	var pieces []piece
	size := 0
	for _, op := range txn.Then {
		n := len(pieces)
		if n == 0 || len(pieces[n-1].Ops) == room || size+len(op.Value) > pieceBytes {
			pieces, size = append(pieces, piece{}), 0
			n++
		}
		p := &pieces[n-1]
		p.Ops = append(p.Ops, stagedOp{Op: op.Type, Key: op.Key, Value: op.Value})
		if cmp, ok := absent[op.Key]; ok {
			p.cmp = append(p.cmp, cmp)
		}
		size += len(op.Value)
	}
	return pieces
}

// commitLarge applies a transaction of any size. If it fails nothing has been applied,
// unless the error is errOver.
func (c *committer) commitLarge(ctx context.Context, txn objdb.Txn) (int64, error) {
	pieces := cut(txn, c.room()-1)
	for i, p := range pieces {
		text, err := json.Marshal(p)
		if err != nil {
			return 0, errs.Wrap(errs.Internal, fmt.Errorf("write down a large change: %w", err))
		}
		if _, err := c.send(ctx, objdb.Txn{If: p.cmp, Then: []objdb.Op{objdb.Put(stagedKey(i), text)}}); err != nil {
			return 0, c.abandon(ctx, err)
		}
	}
	if _, err := c.send(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(decidedKey, fmt.Append(nil, len(pieces)))}}); err != nil {
		return 0, c.abandon(ctx, err)
	}
	rev, err := c.carryOut(ctx, pieces)
	if err != nil && !c.over(err) {
		err = c.giveUp(ctx, "a committed large change could not be completed: "+err.Error())
	}
	return rev, err
}

// abandon removes the pieces of a change that failed with err.
func (c *committer) abandon(ctx context.Context, err error) error {
	if c.over(err) {
		return err
	}
	if _, serr := c.send(ctx, objdb.Txn{Then: []objdb.Op{objdb.DeletePrefix(stagedRoot)}}); serr != nil {
		return c.giveUp(ctx, fmt.Sprintf("what was written down of a failed change cannot be swept away: %v, after %v", serr, err))
	}
	return err
}

// carryOut applies pieces that have been decided, and removes them.
func (c *committer) carryOut(ctx context.Context, pieces []piece) (int64, error) {
	for _, p := range pieces {
		if _, err := c.send(ctx, objdb.Txn{Then: p.ops()}); err != nil {
			return 0, err
		}
	}
	return c.send(ctx, objdb.Txn{Then: []objdb.Op{objdb.Delete(decidedKey), objdb.DeletePrefix(stagedRoot)}})
}

// recover completes what the last leader has begun: a decided change is carried out, any
// other is removed.
func (c *committer) recover(ctx context.Context) error {
	staged, _, err := c.store.List(ctx, stagedRoot)
	if err != nil {
		return fmt.Errorf("read large changes: %w", err)
	}
	_, err = c.store.Get(ctx, decidedKey)
	decided := err == nil
	switch {
	case err != nil && !errs.Is(err, errs.NotFound):
		return fmt.Errorf("read whether a large change was decided: %w", err)
	case !decided && len(staged) == 0:
		return nil
	case !decided:
		c.log.WithField("pieces", len(staged)).Warn("discarding a large change that the previous leader did not commit")
		_, err := c.send(ctx, objdb.Txn{Then: []objdb.Op{objdb.DeletePrefix(stagedRoot)}})
		return err
	}
	c.log.WithField("pieces", len(staged)).Warn("completing a large change that the previous leader committed")
	slices.SortFunc(staged, func(a, b objdb.KV) int { return strings.Compare(a.Key, b.Key) })
	pieces := make([]piece, len(staged))
	for i, kv := range staged {
		if err := json.Unmarshal(kv.Value, &pieces[i]); err != nil {
			return fmt.Errorf("read large change %s: %w", kv.Key, err)
		}
	}
	_, err = c.carryOut(ctx, pieces)
	return err
}
