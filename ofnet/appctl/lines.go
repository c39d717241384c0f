package appctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"time"
	"unicode/utf16"

	"github.com/contiv/netplugin/utils/errs"
)

// maxLine limits a line, in bytes; maxLines the output, in lines.
const (
	maxLine  = 4096
	maxLines = 8 << 20
)

// Lines is Call for commands with long output: it calls yield with each line as it comes,
// without its end. What yield is given is valid during the call only.
func Lines(ctx context.Context, socket, command string, args []string, yield func(line []byte)) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return errs.New(errs.Unavailable, "control socket %s: %w; is the daemon running?", socket, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := json.NewEncoder(conn).Encode(request{ID: 1, Method: command, Params: args}); err != nil {
		return broken(ctx, command, err)
	}
	r := lineReader{bufio.NewReaderSize(conn, 64<<10)}
	refused, err := r.reply(yield)
	switch {
	case err != nil:
		return broken(ctx, command, err)
	case refused != nil:
		return errs.New(errs.Invalid, "%s: %s", command, refusal(refused))
	}
	return nil
}

// errReply is the error for what is no reply.
var errReply = errors.New("malformed reply")

// lineReader reads a reply: an object whose result is a text, or null if there is an error.
type lineReader struct{ *bufio.Reader }

func (r lineReader) reply(yield func([]byte)) (refused json.RawMessage, err error) {
	if err := r.expect('{'); err != nil {
		return nil, err
	}
	for {
		var key []byte
		if err := r.text(func(b byte) error { key = append(key, b); return limit(key) }); err != nil {
			return nil, err
		}
		if err := r.expect(':'); err != nil {
			return nil, err
		}
		b, err := r.next()
		if err != nil {
			return nil, err
		}
		if err := r.UnreadByte(); err != nil {
			return nil, err
		}
		if string(key) == "result" && b == '"' {
			return nil, r.lines(yield) // what follows says nothing more
		}
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		if string(key) == "error" && string(value) != "null" {
			return value, nil
		}
		if err := r.expect(','); err != nil {
			return nil, err
		}
	}
}

// lines passes the lines of a text on.
func (r lineReader) lines(yield func([]byte)) error {
	line, n := make([]byte, 0, maxLine), 0
	err := r.text(func(b byte) error {
		switch {
		case b != '\n':
			line = append(line, b)
			return limit(line)
		case n == maxLines:
			return errReply
		}
		n++
		yield(line)
		line = line[:0]
		return nil
	})
	if err == nil && len(line) > 0 {
		yield(line)
	}
	return err
}

func limit(b []byte) error {
	if len(b) > maxLine {
		return errReply
	}
	return nil
}

// value reads a short text, number or word.
func (r lineReader) value() (json.RawMessage, error) {
	b, err := r.next()
	if err != nil {
		return nil, err
	}
	if b == '"' {
		_ = r.UnreadByte() // it has just been read
		var text []byte
		err := r.text(func(b byte) error { text = append(text, b); return limit(text) })
		return json.RawMessage(strconv.Quote(string(text))), err
	}
	raw := json.RawMessage{b}
	for {
		if b, err = r.ReadByte(); err != nil {
			return nil, err
		}
		if b == ',' || b == '}' {
			return raw, r.UnreadByte()
		}
		if raw = append(raw, b); len(raw) > maxLine {
			return nil, errReply
		}
	}
}

// next is the first byte that is no white space.
func (r lineReader) next() (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil || b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b, err
		}
	}
}

func (r lineReader) expect(want byte) error {
	b, err := r.next()
	if err == nil && b != want {
		err = errReply
	}
	return err
}

// text calls put with the bytes of a text (RFC 8259 section 7).
func (r lineReader) text(put func(byte) error) error {
	if err := r.expect('"'); err != nil {
		return err
	}
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return err
		case b == '"':
			return nil
		case b == '\\':
			err = r.escaped(put)
		default:
			err = put(b)
		}
		if err != nil {
			return err
		}
	}
}

func (r lineReader) escaped(put func(byte) error) error {
	b, err := r.ReadByte()
	if err != nil {
		return err
	}
	switch b {
	case 'n':
		return put('\n')
	case 't':
		return put('\t')
	case 'r':
		return put('\r')
	case 'b':
		return put('\b')
	case 'f':
		return put('\f')
	case '"', '\\', '/':
		return put(b)
	case 'u':
		var hex [4]byte
		if _, err := io.ReadFull(r, hex[:]); err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(hex[:]), 16, 16)
		if err != nil {
			return errReply
		}
		for _, b := range []byte(string(utf16.Decode([]uint16{uint16(n)}))) {
			if err := put(b); err != nil {
				return err
			}
		}
		return nil
	}
	return errReply
}
