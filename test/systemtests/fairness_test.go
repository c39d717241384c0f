package systemtests

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// floodRate is how many connections per second a container tries to open.
const floodRate = 20000

// TestFairness: one container opens connections as fast as it can, straight and through a
// service, from every port. Others on its host do not notice: what they send is
// answered.
func TestFairness(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	// Rules have all connections tracked.
	c.netctl("policy", "create", "open")
	c.netctl("policy", "rule-add", "open", "1", "--action", "allow", "--protocol", "tcp", "--port", "8080")
	c.netctl("group", "create", "net", "group", "--policy", "open")
	target := c.attach("host1", "target", "net")
	noisy := c.attach("host1", "noisy", "net")
	provider := c.attach("host1", "provider", "net")
	quiet := c.attach("host1", "quiet", "net")
	for name, p := range map[string]lab.Container{"busy": target, "web": provider} {
		c.provide(p)
		c.event("start", p, map[string]string{"app": name})
		c.netctl("service", "create", name, "--network", "net", "--selector", "app="+name, "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	}
	busy, web := c.serviceWith("busy", 1), c.serviceWith("web", 1)
	straight := net.JoinHostPort(provider.IPv4, "8080")
	c.reaches("noisy", target.IPv4)

	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 250
	before := c.connectMany(quiet, rounds, straight, web)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var flood sync.WaitGroup
	began, sent := time.Now(), 0
	var floodErr error
	flood.Add(1)
	go func() {
		defer flood.Done()
		sent, floodErr = floodFrom(ctx, fmt.Sprintf("/proc/%d/root%s", h.PID(), noisy.Netns), noisy.IPv4, target.IPv4+":8080", busy.addresses("tcp")[0])
	}()
	during := c.connectMany(quiet, rounds, straight, web)
	cancel()
	flood.Wait()
	took := time.Since(began)
	if floodErr != nil || sent == 0 {
		t.Fatalf("the flood broke off after %d connections: %v", sent, floodErr)
	}
	t.Logf("one container began %.0f connections per second for %.1f s", float64(sent)/took.Seconds(), took.Seconds())
	t.Logf("others without that: %v", before)
	t.Logf("others meanwhile:    %v", during)
	if during.lost*100 >= during.tried {
		t.Errorf("others lose %d of %d", during.lost, during.tried)
	}
	// Each began at the container's own meter, which drops what is beyond the rate. How
	// much that is depends on how many the switch has taken in at all.
	dropped := metric(c.text(h, "/metrics"), `contiv_ovs_dropped_packets_total{bridge="contivVxlanBridge",reason="connection-rate"}`)
	judged := connectionsJudged(c.run("host1", "ovs-ofctl -O OpenFlow13 meter-stats contivVxlanBridge"))
	if judged == 0 {
		t.Error("no packet that begins a connection has met a meter")
	}
	t.Logf("the switch took in %.0f of %d, and dropped %.0f beyond the rate", judged, sent, dropped)
	c.limited("host1")
}

// limited waits until the switch has the limits of the default tenant's zones.
func (c cluster) limited(host string) {
	c.t.Helper()
	c.eventually("the zones of tenants are limited", func() error {
		out, err := c.Output(c.t.Context(), host, "ovs-appctl", "dpctl/ct-get-limits", c.datapath(), "zone=1,16385,32769")
		if err != nil || len(regexp.MustCompile(`limit=400000,`).FindAllString(out, -1)) != 3 {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
}

// connectionsJudged is the most that one of the meters of beginning connections has seen
// (their numbers: ofnet/fair.go).
func connectionsJudged(stats string) (most float64) {
	for _, m := range regexp.MustCompile(`meter:(\d+) .*packet_in_count:(\d+)`).FindAllStringSubmatch(stats, -1) {
		id, _ := strconv.Atoi(m[1])
		n, _ := strconv.ParseFloat(m[2], 64)
		if id >= 0xf801 && id < 0xf801+1000 {
			most = max(most, n)
		}
	}
	return most
}

// metric reads the value of a metric, 0 if it is not there.
func metric(text, name string) float64 {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	return v
}

// experience is what became of connections.
type experience struct {
	tried, lost  int // lost: no answer came, however late
	repeated     int // the first packet had to be sent again, or was late by a second
	slowest, sum time.Duration
}

func (e experience) String() string {
	return fmt.Sprintf("%d tried, %d lost, %d sent again, %s on average, %s at most", e.tried, e.lost, e.repeated,
		(e.sum / time.Duration(max(1, e.tried))).Round(10*time.Microsecond), e.slowest.Round(time.Millisecond))
}

// connectMany asks again and again by TCP and UDP, straight and through a service, one after
// the other.
func (c cluster) connectMany(from lab.Container, rounds int, straight string, svc service) (e experience) {
	c.t.Helper()
	for range rounds {
		for _, network := range []string{"tcp", "udp"} {
			for _, to := range []string{straight, svc.addresses(network)[0]} {
				began := time.Now()
				repeated, err := c.connectOnce(from, network, to)
				took := time.Since(began)
				e.tried++
				e.sum, e.slowest = e.sum+took, max(e.slowest, took)
				if repeated {
					e.repeated++
				}
				if err != nil {
					c.t.Logf("%s to %s: %v", network, to, err)
					e.lost++
				}
			}
		}
	}
	return e
}

func (c cluster) connectOnce(from lab.Container, network, to string) (repeated bool, err error) {
	conn, err := c.dial(from, network, to)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		raw, err := tcp.SyscallConn()
		if err != nil {
			return false, err
		}
		var info *unix.TCPInfo
		var failed error
		err = raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err := errors.Join(err, failed); err != nil {
			return false, err
		}
		repeated = info.Total_retrans > 0
	}
	_, err = ask(conn, patience)
	return repeated, err
}

// floodFrom sends first segments of connections (RFC 9293 section 3.5) from all ports of an
// address in turn, floodRate of them per second if the machine can, until ctx ends.
func floodFrom(ctx context.Context, netnsPath, from string, to ...string) (sent int, err error) {
	var fd int
	err = nsenter.Network(netnsPath, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	src := netip.MustParseAddr(from).As4()
	const batch = 200
	tick := time.NewTicker(time.Second * batch / floodRate)
	defer tick.Stop()
	for ctx.Err() == nil {
		for range batch {
			dst := netip.MustParseAddrPort(to[sent%len(to)])
			segment := firstSegment(src, dst, uint16(1024+sent/len(to)%64000))
			err := unix.Sendto(fd, segment, 0, &unix.SockaddrInet4{Addr: dst.Addr().As4()})
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				return sent, err
			}
			sent++
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return sent, nil
}

func firstSegment(src [4]byte, dst netip.AddrPort, port uint16) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, port)
	binary.BigEndian.PutUint16(b[2:], dst.Port())
	binary.BigEndian.PutUint32(b[4:], 1)
	b[12], b[13] = 5<<4, 2 // SYN
	binary.BigEndian.PutUint16(b[14:], 1000)
	to := dst.Addr().As4()
	pseudo := append(append(append([]byte{}, src[:]...), to[:]...), 0, unix.IPPROTO_TCP, 0, 20)
	sum := uint32(0)
	for _, part := range [][]byte{pseudo, b} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[16:], ^uint16(sum))
	return b
}
