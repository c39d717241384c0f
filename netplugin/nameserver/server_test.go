package nameserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// resolver is a name server of the outside world, by UDP and TCP; it returns where.
func resolver(t testing.TB, h dns.HandlerFunc) (address string) {
	t.Helper()
	tcp, udp := sockets(t)
	for _, s := range []*dns.Server{{Listener: tcp, Handler: h}, {PacketConn: udp, Handler: h}} {
		started, ended := make(chan struct{}), make(chan error)
		s.NotifyStartedFunc = func() { close(started) }
		go func() { ended <- s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			_ = s.Shutdown()
			<-ended
		})
	}
	return tcp.Addr().String()
}

// sockets are two of the same port. Another program may have it for UDP: then another.
func sockets(t testing.TB) (net.Listener, net.PacketConn) {
	t.Helper()
	for {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if udp, err := net.ListenPacket("udp", tcp.Addr().String()); err == nil {
			return tcp, udp
		}
		tcp.Close()
	}
}

// start makes a server with the names of sample that asks a resolver.
func start(t testing.TB, h dns.HandlerFunc) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	conf := "nameserver 127.0.0.1\n"
	var servers []string
	if h != nil {
		servers = []string{resolver(t, h)}
	}
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Domain: "contiv.local.", TTL: 5, ResolvConf: path, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	s.names = sample(t)
	s.zone.names = s.names
	if h == nil {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.upstream.resolvers(); err != nil && h != nil {
		t.Fatal(err)
	}
	if servers != nil { // resolv.conf has no ports
		s.upstream.servers = servers
	}
	s.upstream.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

// outcome is what became of a query.
type outcome struct {
	passed bool
	answer *dns.Msg
}

// ask asks, and waits for what comes of it.
func ask(t testing.TB, s *Server, toAgent bool, message []byte) outcome {
	t.Helper()
	got := make(chan outcome, 2)
	s.Query(drivers.DNSQuery{
		Tenant: "blue", ToAgent: toAgent, Message: message,
		Answer: func(wire []byte) {
			m := &dns.Msg{}
			if err := m.Unpack(wire); err != nil {
				t.Errorf("unreadable answer: %v", err)
			}
			got <- outcome{answer: m}
		},
		Pass: func() { got <- outcome{passed: true} },
	})
	return <-got
}

func question(name string, qtype uint16, change ...func(*dns.Msg)) []byte {
	m := &dns.Msg{}
	m.SetQuestion(name, qtype)
	m.Id = 4711
	for _, c := range change {
		c(m)
	}
	wire, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return wire
}

// edns says how much the client takes.
func edns(size uint16) func(*dns.Msg) {
	return func(m *dns.Msg) { m.SetEdns0(size, false) }
}

func TestNewRefusesADomainThatIsNone(t *testing.T) {
	for _, domain := range []string{"", ".", "a..b", string(slices.Repeat([]byte("a"), 64))} {
		if _, err := New(Config{Domain: domain}); !errs.Is(err, errs.Invalid) {
			t.Errorf("domain %q: error %v, want Invalid", domain, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	s := start(t, nil)
	got := ask(t, s, false, question("Web1.", dns.TypeA, edns(4096))).answer
	if got == nil || got.Id != 4711 || !got.Response || !got.Authoritative || !got.RecursionAvailable || !got.RecursionDesired ||
		got.Rcode != dns.RcodeSuccess || len(got.Answer) != 1 || got.Answer[0].Header().Name != "Web1." || got.Question[0].Name != "Web1." ||
		got.IsEdns0() == nil || got.IsEdns0().UDPSize() != maxUDP || got.Truncated {
		t.Errorf("answer\n%v", got)
	}
	if got := ask(t, s, false, question("web1.", dns.TypeA)).answer; got.IsEdns0() != nil {
		t.Errorf("EDNS in the answer to a query without:\n%v", got)
	}
	// A known name without that family is no unknown name.
	if got := ask(t, s, false, question("web2.", dns.TypeAAAA)).answer; got == nil || got.Rcode != dns.RcodeSuccess || len(got.Answer)+len(got.Ns) != 0 {
		t.Errorf("answer\n%v", got)
	}
	got = ask(t, s, false, question("nobody.contiv.local.", dns.TypeA)).answer
	if got == nil || got.Rcode != dns.RcodeNameError || len(got.Ns) != 1 || got.Ns[0].(*dns.SOA).Minttl != 5 {
		t.Errorf("answer\n%v", got)
	}
	// All questions of a message are answered.
	got = ask(t, s, false, question("web1.", dns.TypeA, func(m *dns.Msg) {
		m.Question = append(m.Question, dns.Question{Name: "svc.", Qtype: dns.TypeA, Qclass: dns.ClassINET})
	})).answer
	if got == nil || len(got.Answer) != 2 || len(got.Question) != 2 {
		t.Errorf("answer to two questions\n%v", got)
	}
}

func TestWhatIsNotOursGoesOn(t *testing.T) {
	s := start(t, nil)
	for name, message := range map[string][]byte{
		"another name":      question("example.com.", dns.TypeA),
		"another tenant's":  question("secret.", dns.TypeA),
		"a response":        question("web1.", dns.TypeA, func(m *dns.Msg) { m.Response = true }),
		"signed":            question("web1.", dns.TypeA, func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 1) }),
		"an update":         question("web1.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }),
		"a newer EDNS":      question("web1.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(4096, false); m.IsEdns0().SetVersion(1) }),
		"no question":       question("web1.", dns.TypeA, func(m *dns.Msg) { m.Question = nil }),
		"something else":    []byte("not DNS at all"),
		"one byte":          {0},
		"a cut-off message": question("web1.", dns.TypeA)[:15],
	} {
		if got := ask(t, s, false, message); !got.passed {
			t.Errorf("%s is answered:\n%v", name, got.answer)
		}
	}
	st := s.Inspect().(State)
	if c := st.Stats["blue"]; c.Invalid != 6 || c.NotOurs != 4 || c.Found != 0 {
		t.Errorf("counters %+v", c)
	}
}

// Ten addresses of a family fill more than 512 bytes when names are long.
func TestTruncation(t *testing.T) {
	s := start(t, nil)
	long := string(slices.Repeat([]byte("a"), 60))
	name := long + "." + long + "." + long + "." + long + "."
	for i := range 20 {
		s.Apply(objdb.Batch{Events: []objdb.Event{endpoint(t, fmt.Sprintf("net.blue-m%d", i), "", name[:len(name)-1], "", fmt.Sprintf("2001:db8::%d", i+1))}})
	}
	small := ask(t, s, true, question(name, dns.TypeAAAA)).answer
	if n := len(small.Answer); !small.Truncated || n == 0 || n >= maxRecords {
		t.Errorf("by UDP without EDNS: truncated %t, %d records", small.Truncated, n)
	}
	large := ask(t, s, true, question(name, dns.TypeAAAA, edns(65535))).answer
	if large.Truncated || len(large.Answer) != maxRecords {
		t.Errorf("with EDNS: truncated %t, %d records", large.Truncated, len(large.Answer))
	}
	// The server that the container means does not know the name by TCP either.
	foreign := ask(t, s, false, question(name, dns.TypeAAAA)).answer
	if foreign.Truncated || len(foreign.Answer) == 0 {
		t.Errorf("to another server: truncated %t, %d records", foreign.Truncated, len(foreign.Answer))
	}
	if got := stream(t, s, question(name, dns.TypeAAAA)); got[0].Truncated || len(got[0].Answer) != maxRecords {
		t.Errorf("by TCP: truncated %t, %d records", got[0].Truncated, len(got[0].Answer))
	}
}

// stream asks by a connection, and returns an answer for each message.
func stream(t testing.TB, s *Server, messages ...[]byte) []*dns.Msg {
	t.Helper()
	client, server := net.Pipe()
	ended := make(chan struct{})
	go func() { defer close(ended); s.Stream(t.Context(), "blue", server) }()
	conn := &dns.Conn{Conn: client}
	var out []*dns.Msg
	for _, message := range messages {
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
		m, err := conn.ReadMsg()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	client.Close()
	<-ended
	return out
}

// outside answers for example.com: by UDP cut, by TCP whole, with 40 addresses.
func outside(w dns.ResponseWriter, req *dns.Msg) {
	m := &dns.Msg{}
	m.SetReply(req)
	m.Authoritative = true
	switch req.Question[0].Name {
	case "example.com.":
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "example.com.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	case "many.example.com.":
		for i := range 100 {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: "many.example.com.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, byte(i))})
		}
	default:
		m.Rcode = dns.RcodeNameError
	}
	if w.LocalAddr().Network() == "udp" {
		m.Truncate(maxUDP)
	}
	_ = w.WriteMsg(m)
}

func TestForwards(t *testing.T) {
	s := start(t, outside)
	for _, change := range [][]func(*dns.Msg){nil, {edns(1400)}} {
		got := ask(t, s, true, question("example.com.", dns.TypeA, change...)).answer
		if got == nil || got.Id != 4711 || got.Authoritative || len(got.Answer) != 1 || (got.IsEdns0() != nil) != (change != nil) {
			t.Errorf("answer\n%v", got)
		}
	}
	if got := ask(t, s, true, question("secret.", dns.TypeA)).answer; got.Rcode != dns.RcodeNameError {
		t.Errorf("another tenant's name: answer\n%v", got)
	}
	if got := ask(t, s, true, question("many.example.com.", dns.TypeA, edns(4096))).answer; !got.Truncated {
		t.Errorf("a large answer by UDP is not cut: %d records", len(got.Answer))
	}
	got := stream(t, s, question("many.example.com.", dns.TypeA), question("web1.", dns.TypeA), question("nobody.example.com.", dns.TypeA))
	if got[0].Truncated || len(got[0].Answer) != 100 || len(got[1].Answer) != 1 || got[2].Rcode != dns.RcodeNameError {
		t.Errorf("answers by TCP\n%v", got)
	}
}

func TestRefusals(t *testing.T) {
	s := start(t, outside)
	for name, c := range map[string]struct {
		message []byte
		rcode   int
	}{
		"update":   {question("example.com.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		"transfer": {question("example.com.", dns.TypeAXFR), dns.RcodeRefused},
		"EDNS 1":   {question("example.com.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(4096, false); m.IsEdns0().SetVersion(1) }), dns.RcodeBadVers},
	} {
		if got := ask(t, s, true, c.message).answer; got == nil || got.Rcode != c.rcode {
			t.Errorf("%s: answer\n%v\nwant %s", name, got, dns.RcodeToString[c.rcode])
		}
	}
	none := start(t, nil) // a host without resolvers
	if got := ask(t, none, true, question("example.com.", dns.TypeA)).answer; got.Rcode != dns.RcodeServerFailure {
		t.Errorf("without resolvers: answer\n%v", got)
	}
}

// A tenant whose questions hang does not take the places of the others.
func TestForwardsAreBounded(t *testing.T) {
	hang := make(chan struct{})
	s := start(t, func(w dns.ResponseWriter, req *dns.Msg) {
		<-hang
		outside(w, req)
	})
	var all sync.WaitGroup
	for range maxForwards / 4 {
		all.Add(1)
		s.Query(drivers.DNSQuery{
			Tenant: "blue", ToAgent: true, Message: question("example.com.", dns.TypeA),
			Answer: func([]byte) { all.Done() },
		})
	}
	if got := ask(t, s, true, question("example.com.", dns.TypeA)).answer; got.Rcode != dns.RcodeServerFailure {
		t.Errorf("one more: answer\n%v", got)
	}
	if got := ask(t, s, true, question("web1.", dns.TypeA)).answer; len(got.Answer) != 1 {
		t.Errorf("a name of ours: answer\n%v", got)
	}
	other := make(chan struct{})
	s.Query(drivers.DNSQuery{Tenant: "red", ToAgent: true, Message: question("example.com.", dns.TypeA), Answer: func([]byte) { close(other) }})
	close(hang)
	<-other
	all.Wait()
}

// The next resolver is asked when one does not answer; new ones when the file changes.
func TestResolversOfTheHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	u := newUpstream(path)
	if _, err := u.resolvers(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("without a file: error %v", err)
	}
	for i, text := range []string{"nameserver 192.0.2.1\nsearch x\nnameserver 2001:db8::53\n", "nameserver 192.0.2.2\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(1000+i), 0)); err != nil {
			t.Fatal(err)
		}
		got, err := u.resolvers()
		want := [][]string{{"192.0.2.1:53", "[2001:db8::53]:53"}, {"192.0.2.2:53"}}[i]
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("resolvers %v, %v; want %v", got, err, want)
		}
	}
}

func FuzzQuery(f *testing.F) {
	f.Add(question("web1.", dns.TypeA), true)
	f.Add(question("example.com.", dns.TypeA, edns(4096)), false)
	f.Add(question("1.1.1.10.in-addr.arpa.", dns.TypePTR), false)
	s := start(f, nil)
	f.Fuzz(func(t *testing.T, message []byte, toAgent bool) {
		req, answer, r := s.judge("blue", message)
		if (answer == nil) != (r == invalid || r == askOthers) {
			t.Fatalf("result %q with answer %v", r, answer)
		}
		fit(req, answer, toAgent)
		if answer == nil {
			return
		}
		if wire, err := answer.Pack(); err == nil && len(wire) > maxUDP {
			t.Fatalf("%d bytes", len(wire))
		}
	})
}
