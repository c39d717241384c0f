package records

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
)

// pack are records that are passed on together or not at all. The zero value is empty.
type pack struct {
	here   bool // they are passed on
	packed []byte
	n      int           // records in packed
	loose  []objdb.Event // what has changed since, the latest last
	gone   int           // deletions among these
}

// add adds a change.
func (p *pack) add(ev objdb.Event) {
	p.loose = append(p.loose, ev)
	if ev.Deleted {
		p.gone++
	}
}

func (p *pack) empty() bool { return p.n == 0 && len(p.loose) == 0 }

// size is in bytes.
func (p *pack) size() int {
	n := len(p.packed)
	for _, ev := range p.loose {
		n += len(ev.KV.Key) + len(ev.KV.Value)
	}
	return n
}

// records returns all of them, sorted by key.
func (p *pack) records() ([]objdb.KV, error) {
	kvs, err := unpack(p.packed)
	if err != nil || len(p.loose) == 0 {
		return kvs, err
	}
	last := make(map[string]objdb.Event, len(p.loose))
	for _, ev := range p.loose {
		last[ev.KV.Key] = ev
	}
	kvs = slices.DeleteFunc(kvs, func(kv objdb.KV) bool { _, changed := last[kv.Key]; return changed })
	for _, ev := range last {
		if !ev.Deleted {
			kvs = append(kvs, ev.KV)
		}
	}
	slices.SortFunc(kvs, func(a, b objdb.KV) int { return strings.Compare(a.Key, b.Key) })
	return kvs, nil
}

// tidy packs again what has changed, if that is much, or at once. So a change costs what it costs
// to pack some ten records.
func (p *pack) tidy(to *packer, now bool) error {
	if len(p.loose) == 0 || !now && len(p.loose) <= 4+p.n/8 && (p.gone == 0 || p.gone < p.n) {
		return nil
	}
	kvs, err := p.records()
	if err != nil {
		return err
	}
	packed, err := to.pack(kvs)
	if err != nil {
		return err
	}
	p.packed, p.n, p.loose, p.gone = packed, len(kvs), nil, 0
	return nil
}

// packer packs records. The zero value is ready.
type packer struct {
	w   *flate.Writer
	out bytes.Buffer
	one []byte
}

// pack returns records as: for each one key, value (RFC 1951 compressed, each preceded by its length), create
// and modify revision, numbers as in package binary. No records are nil.
func (k *packer) pack(kvs []objdb.KV) ([]byte, error) {
	if len(kvs) == 0 {
		return nil, nil
	}
	k.out.Reset()
	if k.w == nil {
		w, err := flate.NewWriter(&k.out, flate.BestSpeed)
		if err != nil {
			return nil, fmt.Errorf("pack records: %w", err)
		}
		k.w = w
	} else {
		k.w.Reset(&k.out)
	}
	for _, kv := range kvs {
		b := binary.AppendUvarint(k.one[:0], uint64(len(kv.Key)))
		b = binary.AppendUvarint(append(b, kv.Key...), uint64(len(kv.Value)))
		b = binary.AppendVarint(append(b, kv.Value...), kv.CreateRevision)
		k.one = binary.AppendVarint(b, kv.ModRevision)
		if _, err := k.w.Write(k.one); err != nil {
			return nil, fmt.Errorf("pack records: %w", err)
		}
	}
	if err := k.w.Close(); err != nil {
		return nil, fmt.Errorf("pack records: %w", err)
	}
	return bytes.Clone(k.out.Bytes()), nil
}

var errTruncated = errors.New("unpack records: they end early")

// unpack takes pack back.
func unpack(packed []byte) ([]objdb.KV, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	rest, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, fmt.Errorf("unpack records: %w", err)
	}
	var kvs []objdb.KV
	for len(rest) > 0 {
		var key, value []byte
		var create, modify int64
		ok := takeBytes(&rest, &key) && takeBytes(&rest, &value) && takeNumber(&rest, &create) && takeNumber(&rest, &modify)
		if !ok {
			return nil, errTruncated
		}
		kvs = append(kvs, objdb.KV{Key: string(key), Value: value, CreateRevision: create, ModRevision: modify})
	}
	return kvs, nil
}

// takeBytes takes bytes that their length precedes.
func takeBytes(rest, into *[]byte) bool {
	n, size := binary.Uvarint(*rest)
	if size <= 0 || n > uint64(len(*rest)-size) {
		return false
	}
	*into, *rest = (*rest)[size:size+int(n)], (*rest)[size+int(n):]
	return true
}

func takeNumber(rest *[]byte, into *int64) bool {
	n, size := binary.Varint(*rest)
	if size <= 0 {
		return false
	}
	*into, *rest = n, (*rest)[size:]
	return true
}
