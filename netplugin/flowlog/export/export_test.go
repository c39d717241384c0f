package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/sirupsen/logrus"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Now().Add(-time.Minute).UTC()

// record is one of each kind by turns.
func record(i int) *flowapi.Record {
	r := &flowapi.Record{
		ID: fmt.Sprintf("%016x", i+1), Start: began, End: began.Add(2 * time.Second), Hosts: []string{"host1"}, Tenant: "blue", Verdict: flowapi.Allowed, Proto: "tcp",
		Src:       flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: 40000, Name: "shop-app", Group: "app"},
		Dst:       flowapi.End{Address: netip.MustParseAddr("10.1.1.3"), Port: 80, Name: "shop-web", Group: "web"},
		Decisions: []flowapi.Decision{{Host: "host1", At: flowapi.AtBoth, By: flowapi.ByRule, Policy: "guard", Rule: "7", Verdict: flowapi.Allowed}},
		Packets:   9, Bytes: 900, Count: 1,
	}
	if i%2 == 1 {
		r.Src.Address, r.Dst.Address = netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8::3")
		r.Verdict, r.Proto, r.Count, r.Packets, r.Bytes = flowapi.Denied, "udp", 5, 0, 0
		r.Service = &flowapi.Service{Name: "store", Address: netip.MustParseAddr("2001:db8::9"), Port: 53}
	}
	return r
}

// source is a log with records, which ends with the context.
type source []*flowapi.Event

func (s source) Stream(ctx context.Context, _ flowapi.Filter, emit func(*flowapi.Event) error, _ func() error) error {
	for _, e := range s {
		if err := emit(e); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// run exports records until as many have been sent or lost.
func run(t *testing.T, spec string, n int, s source) *Exporter {
	t.Helper()
	e, err := New(spec, "host1", quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, s) }()
	eventually.Succeeds(t, fmt.Sprintf("%d records are sent or lost", n), func() error {
		if have := e.sent.Load() + e.lost.Load(); have < uint64(n) {
			return fmt.Errorf("%d are", have)
		}
		return nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return e
}

func records(n int) (s source) {
	for i := range n {
		s = append(s, &flowapi.Event{Record: record(i)})
	}
	return s
}

// TestSpecs: what is no collector is told, without a password that may be in it.
func TestSpecs(t *testing.T) {
	for _, spec := range []string{"", "x", "ipfix://", "ipfix://host", "ipfix:host:1", "http://host/", "otlp+http:///x", "file:relative", "file://", "otlp+http://u:secret@host/", "%"} {
		if _, err := New(spec, "", quiet()); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

// TestOnce: a record is sent when it does not change any more, and once.
func TestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flows.json")
	open := record(0)
	open.End = time.Time{}
	later := *record(3)
	later.Count = 9
	s := append(source{{Record: open}, {Heartbeat: &flowapi.Heartbeat{}}}, records(4)...)
	s = append(s, &flowapi.Event{Record: &later}, &flowapi.Event{Gap: &flowapi.Gap{Count: 3}})
	e := run(t, "file:"+path, 4+3, s)
	if e.sent.Load() != 4 || e.lost.Load() != 3 {
		t.Errorf("%d sent, %d lost", e.sent.Load(), e.lost.Load())
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var counts []uint32
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var ev flowapi.Event
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, ev.Record.Count)
	}
	if fmt.Sprint(counts) != "[1 5 1 9]" {
		t.Errorf("counts %v", counts)
	}
}

// TestFileIsBounded: a file and as many older ones as are kept, each up to its size, also of
// what comes at once; an unwritable one loses what comes.
func TestFileIsBounded(t *testing.T) {
	for _, keep := range []int{1, 3} {
		path := filepath.Join(t.TempDir(), "new", "flows.json")
		f := &file{path: path, most: 4000, keep: keep, dir: true}
		defer f.close()
		for range 20 {
			if err := f.send(t.Context(), records(10)); err != nil {
				t.Fatal(err)
			}
		}
		all, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(all) != keep+1 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, entry := range all {
			if info, err := entry.Info(); err != nil || info.Size() > 4000 || info.Size() == 0 || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
		}
	}
	for _, path := range []string{"/dev/full", "/dev/null/file"} {
		bad := &file{path: path, most: 4000, keep: 1}
		defer bad.close()
		if err := bad.send(t.Context(), records(1)); err == nil {
			t.Errorf("%s takes a record", path)
		}
	}
}

// TestOTLP: a collector decodes what it gets as what OpenTelemetry has it.
func TestOTLP(t *testing.T) {
	got := make(chan *collector.ExportLogsServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req collector.ExportLogsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		if err != nil || r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.URL, r.Header, err)
		}
		got <- &req
	}))
	defer server.Close()
	bad := record(0)
	bad.Src.Name = "\xff<b>" // not text
	run(t, "otlp+"+server.URL, 3, append(records(2), &flowapi.Event{Record: func() *flowapi.Record { bad.ID = "ff"; return bad }()}))
	req := <-got
	list := req.ResourceLogs[0].ScopeLogs[0].LogRecords
	if len(list) != 3 || list[0].SeverityText != "INFO" || list[1].SeverityText != "WARN" ||
		list[1].Body.GetStringValue() != "denied udp shop-app to shop-web: guard/7" || !strings.Contains(list[2].String(), "?<b>") {
		t.Errorf("%v", req)
	}
}

// TestDeadCollector: what nobody takes is counted as lost.
func TestDeadCollector(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if e := run(t, "otlp+"+server.URL, 5, records(5)); e.sent.Load() != 0 || e.lost.Load() != 5 {
		t.Errorf("%d sent, %d lost", e.sent.Load(), e.lost.Load())
	}
}

// freePort is a UDP port that nobody uses.
func freePort(t *testing.T) int {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// TestNfdump: nfcapd collects what is sent, and nfdump shows it.
func TestNfdump(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	c := exec.Command("nfcapd", "-w", dir, "-b", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "3600", "-I", "contiv")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatalf("nfcapd (Debian package nfdump): %v", err)
	}
	eventually.Succeeds(t, "nfcapd listens", func() error {
		open, err := os.ReadFile("/proc/net/udp")
		if err == nil && !strings.Contains(string(open), fmt.Sprintf("0100007F:%04X", port)) {
			err = errors.New("no such port")
		}
		return err
	})
	run(t, fmt.Sprintf("ipfix://127.0.0.1:%d", port), 50, records(50))
	time.Sleep(200 * time.Millisecond) // what is in its socket; there is nothing to wait for
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait() // its status is that of a signal
	out, err := exec.Command("nfdump", "-q", "-R", dir, "-o", "fmt:%pr %sa %sp %da %dp %pkt %byt").CombinedOutput()
	if err != nil {
		t.Fatalf("nfdump: %v\n%s", err, out)
	}
	text := strings.Join(strings.Fields(string(out)), " ")
	for want, n := range map[string]int{"TCP 10.1.1.2 40000 10.1.1.3 80 9 900": 25, "UDP 2001:db8::2 40000 2001:db8::3 80 5 0": 25} {
		if have := strings.Count(text, want); have != n {
			t.Errorf("%d times %q, want %d:\n%s", have, want, n, out)
		}
	}
}

// TestTshark: tshark finds nothing malformed, and the names.
func TestTshark(t *testing.T) {
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	run(t, "ipfix://"+listener.LocalAddr().String(), 4, records(4))
	path := filepath.Join(t.TempDir(), "ipfix.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(65535, layers.LinkTypeIPv4); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 65535)
	for range 3 { // templates, and a message for each family
		_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
		n, _, err := listener.ReadFrom(buf)
		if err != nil || n > messageSize {
			t.Fatalf("a message of %d bytes, %v", n, err)
		}
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(127, 0, 0, 1), DstIP: net.IPv4(127, 0, 0, 1)}
		udp := &layers.UDP{SrcPort: 9, DstPort: 4739}
		_ = udp.SetNetworkLayerForChecksum(ip) // the layer is one
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, udp, gopacket.Payload(buf[:n])); err != nil {
			t.Fatal(err)
		}
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: began, CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("tshark", "-r", path, "-V", "-d", "udp.port==4739,cflow").CombinedOutput()
	if err != nil {
		t.Fatalf("tshark (Debian package tshark): %v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{"DstPort: 80", "SrcAddr: 10.1.1.2", "SrcAddr: 2001:db8::2", "VRFname: blue", "Type 1: Value (hex bytes): 73 68 6f 70 2d 61 70 70"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Malformed") || strings.Contains(text, "No template found") {
		t.Errorf("%s", text)
	}
}

// TestShort cuts names between characters.
func TestShort(t *testing.T) {
	for _, s := range []string{"", "x", strings.Repeat("ä", 300), "x" + strings.Repeat("€", 300), strings.Repeat("\xff", 300)} {
		if got := short(s); len(got) > longestName || utf8.ValidString(s) && !utf8.ValidString(got) || !strings.HasPrefix(s, got) {
			t.Errorf("%q", got)
		}
	}
}
