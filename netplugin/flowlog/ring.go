package flowlog

import (
	"net/netip"
	"time"
	"unique"
	"unsafe"

	"github.com/contiv/netplugin/state/flowapi"
)

// entry is a record as the ring keeps it. Names, which many records share, are kept once.
type entry struct {
	start, end int64 // Unix nanoseconds; end 0: open
	src, dst   netip.AddrPort
	asked      netip.AddrPort // of the service
	srcEnd     unique.Handle[flowapi.End]
	dstEnd     unique.Handle[flowapi.End]
	names      unique.Handle[shared]
	packets    uint64
	bytes      uint64
	count      uint32
}

// shared is what many records have in common.
type shared struct {
	tenant    string
	verdict   flowapi.Verdict
	proto     string
	service   string
	decisions [3]flowapi.Decision // those with By
	wouldBe   flowapi.Decision    // of rules in audit mode, likewise
	audited   bool                // for the audit file
}

// entryBytes is what an entry takes: itself, and its part of names and indexes.
const entryBytes = int(unsafe.Sizeof(entry{})) + 64

// chunk is how many entries are allocated together.
const chunk = 1024

// ring holds the newest entries, numbered from first without gaps.
type ring struct {
	most   int // entries
	first  uint64
	next   uint64
	offset int // of first in chunks[0]
	chunks [][]entry
}

func newRing(bytes int, first uint64) *ring {
	return &ring{most: max(bytes/entryBytes, chunk), first: first, next: first}
}

func (r *ring) len() int { return int(r.next - r.first) }

// bytes is the memory in use.
func (r *ring) bytes() int { return len(r.chunks) * chunk * entryBytes }

// put appends an entry and returns its number.
func (r *ring) put(e entry) uint64 {
	if n := r.offset + r.len(); n == len(r.chunks)*chunk {
		r.chunks = append(r.chunks, make([]entry, chunk))
	}
	*r.slot(r.next) = e
	r.next++
	return r.next - 1
}

func (r *ring) slot(n uint64) *entry {
	i := r.offset + int(n-r.first)
	return &r.chunks[i/chunk][i%chunk]
}

// at returns an entry, nil if it has been dropped.
func (r *ring) at(n uint64) *entry {
	if n < r.first || n >= r.next {
		return nil
	}
	return r.slot(n)
}

// drop removes the oldest entry.
func (r *ring) drop() {
	*r.slot(r.first) = entry{}
	r.first++
	if r.offset++; r.offset == chunk {
		r.offset, r.chunks = 0, r.chunks[1:]
	}
}

func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// idOf is the ID of the entry with a number; they sort like the numbers.
func idOf(n uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[n>>(60-4*i)&15]
	}
	return string(b[:])
}

// record is the entry as it is told.
func (e *entry) record(n uint64, host string) *flowapi.Record {
	s := e.names.Value()
	r := &flowapi.Record{
		ID: idOf(n), Start: timeOf(e.start), End: timeOf(e.end), Hosts: []string{host}, Tenant: s.tenant, Verdict: s.verdict, Proto: s.proto,
		Src: e.srcEnd.Value(), Dst: e.dstEnd.Value(), Packets: e.packets, Bytes: e.bytes, Count: e.count, Audited: s.audited,
	}
	r.Src.Address, r.Src.Port = e.src.Addr(), e.src.Port()
	r.Dst.Address, r.Dst.Port = e.dst.Addr(), e.dst.Port()
	if s.service != "" || e.asked.IsValid() {
		r.Service = &flowapi.Service{Name: s.service, Address: e.asked.Addr(), Port: e.asked.Port()}
	}
	if s.wouldBe.By != "" {
		r.WouldBe = &s.wouldBe
	}
	for _, d := range s.decisions {
		if d.By != "" {
			r.Decisions = append(r.Decisions, d)
		}
	}
	return r
}

// shareEnd keeps the names of an end; address and port are the entry's own.
func shareEnd(e flowapi.End) unique.Handle[flowapi.End] {
	e.Address, e.Port = netip.Addr{}, 0
	return unique.Make(e)
}
