package objdb

import (
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// MaxTxnBytes limits the keys and values of one transaction together, including
// comparisons. etcd rejects requests over 1.5 MiB; this leaves room for their framing.
const MaxTxnBytes = 1 << 20

// MaxKey limits the length of a key, in bytes.
const MaxKey = 1 << 10

// Created holds while kv's key has not been deleted since it was read, whatever its value
// is now.
func Created(kv KV) Cmp { return Cmp{Type: CmpCreate, Key: kv.Key, Revision: kv.CreateRevision} }

// HasValue holds while key exists with exactly this value.
func HasValue(key string, value []byte) Cmp { return Cmp{Type: CmpValue, Key: key, Value: value} }

// Validate checks what every backend requires of a transaction before it is sent:
// well-formed keys, known operations and comparisons, the limits MaxOps (given), MaxValue
// and MaxTxnBytes, and no key in two operations. The error's kind is Invalid.
func (t Txn) Validate(maxOps int) error {
	if len(t.Then) > maxOps {
		return errs.New(errs.Invalid, "transaction has %d operations, the store takes %d", len(t.Then), maxOps)
	}
	if len(t.If) > maxOps {
		return errs.New(errs.Invalid, "transaction has %d comparisons, the store takes %d", len(t.If), maxOps)
	}
	size := 0
	for _, c := range t.If {
		if err := c.validate(); err != nil {
			return err
		}
		size += len(c.Key) + len(c.Value)
	}
	keys := make(map[string]struct{}, len(t.Then))
	var prefixes []string
	for _, op := range t.Then {
		if err := op.validate(); err != nil {
			return err
		}
		if _, dup := keys[op.Key]; dup {
			return errs.New(errs.Invalid, "transaction touches key %q twice", op.Key)
		}
		keys[op.Key] = struct{}{}
		if op.Type == OpDeletePrefix {
			prefixes = append(prefixes, op.Key)
		}
		size += len(op.Key) + len(op.Value)
	}
	for _, p := range prefixes {
		for _, op := range t.Then {
			if op.Key != p && strings.HasPrefix(op.Key, p) {
				return errs.New(errs.Invalid, "transaction touches key %q and deletes prefix %q", op.Key, p)
			}
		}
	}
	if size > MaxTxnBytes {
		return errs.New(errs.Invalid, "transaction has %d bytes, at most %d are allowed", size, MaxTxnBytes)
	}
	return nil
}

func (c Cmp) validate() error {
	if err := CheckKey(c.Key); err != nil {
		return err
	}
	switch c.Type {
	case CmpAbsent, CmpPresent, CmpValue:
		return nil
	case CmpModRevision, CmpCreate:
		// Revision 0 would mean "absent" on some backends and never hold on others.
		if c.Revision < 1 {
			return errs.New(errs.Invalid, "comparison of key %q with revision %d: revisions begin at 1", c.Key, c.Revision)
		}
		return nil
	}
	return errs.New(errs.Invalid, "comparison %d of key %q is unknown", c.Type, c.Key)
}

func (o Op) validate() error {
	if err := CheckKey(o.Key); err != nil {
		return err
	}
	switch o.Type {
	case OpPut:
		if len(o.Value) > MaxValue {
			return errs.New(errs.Invalid, "value of key %q has %d bytes, at most %d are allowed", o.Key, len(o.Value), MaxValue)
		}
		return nil
	case OpDelete, OpDeletePrefix:
		return nil
	}
	return errs.New(errs.Invalid, "operation %d on key %q is unknown", o.Type, o.Key)
}

// CheckKey reports whether every backend accepts key as a key or prefix: it must begin with
// a slash and have at most MaxKey bytes. The error's kind is Invalid.
func CheckKey(key string) error {
	if !strings.HasPrefix(key, "/") {
		return errs.New(errs.Invalid, "key %q does not begin with a slash", key)
	}
	if len(key) > MaxKey {
		return errs.New(errs.Invalid, "key %q… has %d bytes, at most %d are allowed", key[:64], len(key), MaxKey)
	}
	return nil
}
