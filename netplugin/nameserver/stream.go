package nameserver

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/miekg/dns"
)

// Bounds of connections.
const (
	maxStreams = 256              // at a time; a tenant has a quarter of them
	streamIdle = 10 * time.Second // without a message, or to take an answer (RFC 7766 section 6.2.3)
)

// Stream answers the messages of a connection (RFC 7766) of a container to an address
// of the agent, one after the other, and closes it. It ends with the connection, when
// nothing comes for ten seconds, and with ctx.
func (s *Server) Stream(ctx context.Context, tenant string, c net.Conn) {
	defer c.Close()
	release, ok := s.streams.take(tenant)
	if !ok {
		s.metrics.count(tenant, limited, 0)
		return
	}
	defer release()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	for {
		if err := c.SetDeadline(time.Now().Add(streamIdle)); err != nil {
			return
		}
		message, err := readMessage(c)
		if err != nil {
			return
		}
		if err := c.SetDeadline(time.Now().Add(streamIdle)); err != nil || !s.answer(ctx, tenant, message, c) {
			return
		}
	}
}

// answer answers one message, and reports whether the connection may go on.
func (s *Server) answer(ctx context.Context, tenant string, message []byte, c net.Conn) bool {
	began := time.Now()
	type outcome struct {
		r      result
		answer *dns.Msg
	}
	got := make(chan outcome, 1)
	switch req, answer, r := s.judge(tenant, message); {
	case r == askOthers:
		s.forward(tenant, req, true, func(r result, m *dns.Msg) { got <- outcome{r, m} })
	default:
		got <- outcome{r, answer}
	}
	var o outcome
	select {
	case o = <-got:
	case <-ctx.Done():
		return false
	}
	s.metrics.count(tenant, o.r, time.Since(began))
	if o.answer == nil {
		return false // nonsense
	}
	wire, err := o.answer.Pack()
	if err != nil || len(wire) > dns.MaxMsgSize {
		return false
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...))
	return err == nil
}

// readMessage reads one message with its length (RFC 1035 section 4.2.2).
func readMessage(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(head[:]))
	_, err := io.ReadFull(r, message)
	return message, err
}
