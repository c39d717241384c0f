package ofctrl_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
	"github.com/contiv/netplugin/utils/errs"
)

// peer is the switch's end of a connection, for behavior that a real switch never shows.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// listen creates a target and runs script on the one connection to it, which is closed when
// the test ends.
func listen(t *testing.T, script func(*peer)) (target string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	conn := make(chan net.Conn, 1)
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		conn <- nc
		script(&peer{t, nc})
	}()
	t.Cleanup(func() {
		l.Close()
		select {
		case nc := <-conn:
			nc.Close()
		default:
		}
		<-done
	})
	return "tcp:" + l.Addr().String()
}

func (p *peer) send(xid uint32, m of.Message) {
	b, err := of.Append(nil, xid, m)
	if err == nil {
		_, err = p.nc.Write(b)
	}
	if err != nil {
		p.t.Logf("switch sends %T: %v", m, err)
	}
}

// next reads one message; nil when the connection is closed.
func (p *peer) next() (of.Header, of.Message) {
	head := make([]byte, of.HeaderLen)
	if _, err := io.ReadFull(p.nc, head); err != nil {
		return of.Header{}, nil
	}
	h, err := of.DecodeHeader(head)
	if err != nil {
		p.t.Errorf("switch got %x: %v", head, err)
		return h, nil
	}
	b := append(head, make([]byte, int(h.Length)-of.HeaderLen)...)
	if _, err := io.ReadFull(p.nc, b[of.HeaderLen:]); err != nil {
		return h, nil
	}
	h, m, err := of.Decode(b)
	if err != nil {
		p.t.Errorf("switch got %x: %v", b, err)
	}
	return h, m
}

// await reads until a message of type M.
func await[M of.Message](p *peer) (of.Header, M) {
	for {
		h, m := p.next()
		if x, ok := m.(M); ok || m == nil {
			return h, x
		}
	}
}

// greet does the switch's part of the handshake.
func (p *peer) greet() {
	p.send(1, &of.Hello{Bitmap: 1 << of.Version})
	h, _ := await[*of.FeaturesRequest](p)
	p.send(h.XID, &of.FeaturesReply{DatapathID: 5})
	await[*of.SetConfig](p)
}

func TestHandshakeFails(t *testing.T) {
	tests := []struct {
		name   string
		script func(*peer)
		kind   errs.Kind
		want   string
	}{
		{"old version", func(p *peer) {
			p.nc.Write([]byte{1, 0, 0, 8, 0, 0, 0, 1}) // the test sees it
		}, errs.Invalid, "not 1.3"},
		{"error", func(p *peer) {
			p.send(1, &of.Error{Code: 1, Data: []byte("go away")})
		}, errs.Invalid, "go away"},
		{"no hello", func(p *peer) { p.send(1, &of.BarrierReply{}) }, errs.Invalid, "expected HELLO"},
		{"hangs up", func(p *peer) {
			p.next() // closing with an unread HELLO would reset the connection instead
			p.nc.Close()
		}, errs.Unavailable, "EOF"},
		{"nonsense", func(p *peer) {
			p.nc.Write([]byte("SSH-2.0-server\r\n")) // the test sees it
		}, errs.Invalid, "malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ofctrl.Dial(t.Context(), ofctrl.Config{Target: listen(t, tt.script)})
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q of kind %v, want %q of kind %v", err, errs.KindOf(err), tt.want, tt.kind)
			}
		})
	}
}

func TestHandshakeEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hungUp := make(chan struct{})
	target := listen(t, func(p *peer) {
		defer close(hungUp)
		p.next()
		cancel() // in the middle of the handshake
		p.next() // until the other end closes
	})
	c, err := ofctrl.Dial(ctx, ofctrl.Config{Target: target})
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-hungUp
}

func TestEchoReplyCopiesRequest(t *testing.T) {
	result := make(chan bool, 1)
	target := listen(t, func(p *peer) {
		p.send(1, &of.Hello{})
		h, _ := await[*of.FeaturesRequest](p)
		p.send(0x99, &of.EchoRequest{Data: []byte("during the handshake")})
		p.send(h.XID, &of.FeaturesReply{})
		first, a := await[*of.EchoReply](p)
		p.send(0x77, &of.EchoRequest{Data: []byte("after it")})
		second, b := await[*of.EchoReply](p)
		result <- a != nil && b != nil && first.XID == 0x99 && second.XID == 0x77 &&
			bytes.Equal(a.Data, []byte("during the handshake")) && bytes.Equal(b.Data, []byte("after it"))
		p.next()
	})
	c := dial(t, ofctrl.Config{Target: target})
	if !<-result {
		t.Error("echo replies are not copies of the requests")
	}
	c.Close()
}

func TestSilentSwitchIsGivenUp(t *testing.T) {
	target := listen(t, func(p *peer) {
		p.greet()
		for _, m := p.next(); m != nil; _, m = p.next() { // reads, never answers
		}
	})
	c := dial(t, ofctrl.Config{Target: target, EchoInterval: 5 * time.Millisecond, EchoTimeout: 30 * time.Millisecond})
	<-c.Done()
	if err := c.Err(); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v", err)
	}
}

func TestSwitchThatDoesNotReadIsGivenUp(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	target := listen(t, func(p *peer) {
		p.greet()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for { // alive, but never answers
			select {
			case <-stop:
				return
			case <-tick.C:
				b, _ := of.Append(nil, 0, &of.EchoReply{})
				if _, err := p.nc.Write(b); err != nil {
					return
				}
			}
		}
	})
	c := dial(t, ofctrl.Config{Target: target, EchoInterval: 5 * time.Millisecond, EchoTimeout: 50 * time.Millisecond})
	big := make([]of.Message, 2000)
	for i := range big {
		big[i] = &of.PacketOut{InPort: of.PortAny, Data: make([]byte, 60000)}
	}
	if err := c.Send(t.Context(), big); !errs.Is(err, errs.Unavailable) {
		t.Errorf("error %v", err)
	}
	<-c.Done()
}

func TestRepliesOutOfOrderFindTheirCalls(t *testing.T) {
	target := listen(t, func(p *peer) {
		p.greet()
		h1, _ := await[*of.BarrierRequest](p)
		h2, _ := await[*of.BarrierRequest](p)
		p.nc.Write([]byte{4, 99, 0, 12, 0, 0, 0, 1, 2, 3, 4, 5})       // of unknown type
		p.nc.Write([]byte{4, 10, 0, 9, 0, 0, 0, 0, 1})                 // a packet-in cut short
		p.send(0xdead, &of.Error{ErrType: 1, Code: 1, Data: []byte{}}) // to nobody
		p.send(h2.XID, &of.BarrierReply{})
		p.send(h1.XID, &of.BarrierReply{})
		p.next()
	})
	c := dial(t, ofctrl.Config{Target: target})
	result := make(chan error, 2)
	for range 2 {
		go func() { result <- c.Barrier(t.Context()) }()
	}
	for range 2 {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
}

func TestCancelledCallLeavesTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := listen(t, func(p *peer) {
		p.greet()
		h, _ := await[*of.BarrierRequest](p)
		cancel()
		h2, _ := await[*of.BarrierRequest](p)
		p.send(h.XID, &of.BarrierReply{}) // too late
		p.send(h2.XID, &of.BarrierReply{})
		p.next()
	})
	c := dial(t, ofctrl.Config{Target: target})
	if err := c.Barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := c.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSlowHandlerLosesPacketsOnly(t *testing.T) {
	const n = 3000
	target := listen(t, func(p *peer) {
		p.greet()
		var b []byte
		for range n {
			b, _ = of.Append(b, 0, &of.PacketIn{Data: []byte{1}})
			b, _ = of.Append(b, 0, &of.PortStatus{})
		}
		p.nc.Write(b) // the test sees it
		h, _ := await[*of.BarrierRequest](p)
		p.send(h.XID, &of.BarrierReply{})
		p.next()
	})
	release := make(chan struct{})
	all := make(chan struct{})
	ports, packets := 0, uint64(0)
	c := dial(t, ofctrl.Config{
		Target:   target,
		PacketIn: func(*of.PacketIn) { <-release; packets++ },
		PortStatus: func(*of.PortStatus) {
			if ports++; ports == n {
				close(all)
			}
		},
	})
	// The connection keeps working while the handler hangs.
	if err := c.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(release)
	<-all
	s := c.Stats()
	if s.PacketIns != n || s.DroppedPacketIns == 0 || packets+s.DroppedPacketIns != n {
		t.Errorf("%d of %d packets handled, %+v", packets, n, s)
	}
}

// Messages of the switch are handled in order, whatever their types.
func TestMessagesStayInOrder(t *testing.T) {
	const n = 200 // fits into the queue of a slow handler
	target := listen(t, func(p *peer) {
		p.greet()
		var b []byte
		for i := range uint32(n) {
			switch i % 3 {
			case 0:
				b, _ = of.Append(b, 0, &of.PortStatus{Port: of.Port{Number: i}})
			case 1:
				b, _ = of.Append(b, 0, &of.PacketIn{Cookie: uint64(i)})
			default:
				b, _ = of.Append(b, 0, &of.FlowRemoved{Cookie: uint64(i)})
			}
		}
		p.nc.Write(b) // the test sees it
		p.next()
	})
	var heard []uint64
	all := make(chan struct{})
	hear := func(i uint64) {
		if heard = append(heard, i); len(heard) == n {
			close(all)
		}
	}
	c := dial(t, ofctrl.Config{
		Target:      target,
		PortStatus:  func(p *of.PortStatus) { hear(uint64(p.Port.Number)) },
		PacketIn:    func(p *of.PacketIn) { hear(p.Cookie) },
		FlowRemoved: func(p *of.FlowRemoved) { hear(p.Cookie) },
	})
	<-all
	if !slices.IsSorted(heard) {
		t.Errorf("out of order: %v", heard)
	}
	c.Close()
}

func TestMessageThatCannotBeEncoded(t *testing.T) {
	target := listen(t, func(p *peer) {
		p.greet()
		for _, m := p.next(); m != nil; _, m = p.next() { // reads only
		}
	})
	c := dial(t, ofctrl.Config{Target: target})
	huge := of.AddFlow(of.Flow{Instructions: of.NewInstructions().Apply(of.Actions(make([]byte, 1<<16)))})
	for name, f := range map[string]func(context.Context, []of.Message) error{"send": c.Send, "bundle": c.Bundle} {
		err := f(t.Context(), []of.Message{of.AddFlow(of.Flow{}), huge})
		var refused *ofctrl.MessageError
		if !errors.Is(err, of.ErrTooLong) || !errors.As(err, &refused) || refused.Index != 1 || refused.Message != of.Message(huge) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
