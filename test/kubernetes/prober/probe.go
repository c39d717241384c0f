package prober

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Protocols of a Target.
const (
	TCP  = "tcp"
	UDP  = "udp"
	ICMP = "icmp" // whose Target has no port
)

// Target is somebody to be asked for his name.
type Target struct {
	Proto string
	To    netip.AddrPort
}

// ICMPAnswer is the name of who answers to ICMP.
const ICMPAnswer = "somebody"

// again is how long an answer is waited for before the question is asked once more.
const again = 200 * time.Millisecond

// ask asks all targets at once and returns the names of those that answer before ctx
// ends, "" for the others.
func ask(ctx context.Context, targets []Target) []string {
	names := make([]string, len(targets))
	var asking sync.WaitGroup
	for i, t := range targets {
		asking.Go(func() { names[i] = t.ask(ctx) })
	}
	asking.Wait()
	return names
}

func (t Target) ask(ctx context.Context) string {
	if t.Proto != TCP {
		return t.askByDatagram(ctx)
	}
	// A lost segment is sent again after a second; another connection does not wait so long.
	for wait := again; ctx.Err() == nil; wait *= 2 {
		if name := t.connect(ctx, wait); name != "" {
			return name
		}
	}
	return ""
}

// connect asks by one connection, which may take so long.
func (t Target) connect(ctx context.Context, wait time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := t.dial(ctx)
	if err != nil {
		<-ctx.Done() // refused: perhaps not the next time
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

func (t Target) askByDatagram(ctx context.Context) string {
	conn, err := t.dial(ctx)
	if err != nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	asked := make(chan struct{})
	defer close(asked)
	go func() {
		for {
			// An error of an earlier datagram is not one of this.
			_, _ = conn.Write(t.question())
			select {
			case <-asked:
				return
			case <-time.After(again):
			}
		}
	}()
	answer := make([]byte, 1500)
	for ctx.Err() == nil {
		n, err := t.read(conn, answer)
		if err != nil {
			continue // refused: perhaps not the next time
		}
		if t.Proto == UDP {
			return string(answer[:n])
		}
		if n > 0 && answer[0] == t.echoReply() {
			return ICMPAnswer
		}
	}
	return ""
}

// read reads what comes from the target, 0 bytes if something else came. A raw socket has
// that too, of the moment before it is connected; and it gives IPv4 headers.
func (t Target) read(conn net.Conn, b []byte) (n int, err error) {
	raw, ok := conn.(*net.IPConn)
	if !ok {
		return conn.Read(b)
	}
	n, from, err := raw.ReadFromIP(b)
	if err != nil || !from.IP.Equal(t.To.Addr().AsSlice()) {
		return 0, err
	}
	return n, nil
}

func (t Target) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	switch {
	case t.Proto != ICMP:
		return d.DialContext(ctx, t.Proto, t.To.String())
	case t.To.Addr().Is4():
		return d.DialContext(ctx, "ip4:icmp", t.To.Addr().String())
	}
	return d.DialContext(ctx, "ip6:ipv6-icmp", t.To.Addr().String())
}

// question is what a datagram says: anything, or an echo request (RFC 792, RFC 4443).
func (t Target) question() []byte {
	switch {
	case t.Proto == UDP:
		return []byte("who?")
	case t.To.Addr().Is6():
		return []byte{128, 0, 0, 0, 0, 1, 0, 1} // the kernel fills in the checksum
	}
	// Number and sequence are 1: with zeros alone the answer of Linux has a checksum of 0,
	// which is wrong.
	return []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
}

func (t Target) echoReply() byte {
	if t.To.Addr().Is6() {
		return 129
	}
	return 0
}

// stream is a connection to a Server, which sends back what it gets.
type stream struct {
	conn net.Conn
	in   *bufio.Reader
}

func openStream(ctx context.Context, to netip.AddrPort) (*stream, error) {
	conn, err := Target{TCP, to}.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &stream{conn, bufio.NewReader(conn)}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := s.in.ReadString('\n'); err != nil { // its name
		conn.Close()
		return nil, fmt.Errorf("%s takes a connection and says nothing: %w", to, err)
	}
	return s, nil
}

// echo sends a word and reports whether that comes back before ctx ends. Words of before
// may come first.
func (s *stream) echo(ctx context.Context, word string) bool {
	deadline, _ := ctx.Deadline()
	_ = s.conn.SetDeadline(deadline)
	if _, err := fmt.Fprintln(s.conn, word); err != nil {
		return false
	}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return false
		}
		if strings.TrimSpace(line) == word {
			return true
		}
	}
}
