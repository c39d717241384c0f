package libopenflow

import (
	"bytes"
	"encoding/binary"
)

// reader takes big-endian values off a slice. After the first read beyond the end
// err is set and every read gives zero, so that decoders need one check only.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.err = malformed("%d bytes needed, %d left", n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) u8() uint8 {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (r *reader) mac() (m MAC) {
	copy(m[:], r.take(6))
	return m
}

// rest copies what is left; nil when nothing is.
func (r *reader) rest() []byte {
	p := r.b
	r.b = nil
	if len(p) == 0 {
		return nil
	}
	return bytes.Clone(p)
}

// text takes n bytes and cuts them at the first NUL, which the last byte counts as.
func (r *reader) text(n int) string {
	p := r.take(n)
	p = p[:max(0, len(p)-1)]
	if i := bytes.IndexByte(p, 0); i >= 0 {
		p = p[:i]
	}
	return string(p)
}

// more reports whether there is input left and no error yet.
func (r *reader) more() bool { return r.err == nil && len(r.b) > 0 }

// sub takes n bytes as a reader of their own; an error in r is in both.
func (r *reader) sub(n int) *reader { return &reader{b: r.take(n), err: r.err} }

// fail records the first error.
func (r *reader) fail(err error) {
	if r.err == nil && err != nil {
		r.err = err
	}
}

func appendText(b []byte, s string, n int) []byte {
	if len(s) >= n {
		s = s[:n-1]
	}
	b = append(b, s...)
	return append(b, make([]byte, n-len(s))...)
}
