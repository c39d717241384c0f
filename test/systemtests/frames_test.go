package systemtests

import (
	"bytes"
	"fmt"
	"net"
	"sync"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// inside runs f in the network of a host or a container.
func (c cluster) inside(name string, f func() error) error {
	host, netns := name, ""
	if container, err := c.Container(name); err == nil {
		host, netns = container.Host, container.Netns
	}
	h, err := c.Host(host)
	if err != nil {
		return err
	}
	return nsenter.Host(h.PID(), netns, f)
}

// wire is a link of a host or a container, to send frames to and to see those that pass.
type wire struct {
	name string // where:link
	fd   int

	mu     sync.Mutex
	frames [][]byte
}

// wire opens a link for frames as they are, both ways; what it has seen is kept.
func (c cluster) wire(where, link string) *wire {
	c.t.Helper()
	w := &wire{name: where + ":" + link}
	err := c.inside(where, func() error {
		iface, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		const all = uint16(unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8) // in network byte order
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
			_ = unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<20)
		}
		if err := unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}); err != nil {
			return err
		}
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: iface.Index})
	})
	if err != nil {
		c.t.Fatalf("open %s: %v", w.name, err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<16)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, from, err := unix.Recvfrom(w.fd, buf, 0)
			if err != nil {
				continue // its time is over, or the link is gone
			}
			if sll, ok := from.(*unix.SockaddrLinklayer); ok && sll.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			w.mu.Lock()
			w.frames = append(w.frames, bytes.Clone(buf[:n]))
			w.mu.Unlock()
		}
	}()
	c.t.Cleanup(func() {
		close(stop)
		<-done
		_ = unix.Close(w.fd)
	})
	return w
}

func (w *wire) send(frame []byte) error {
	if _, err := unix.Write(w.fd, frame); err != nil {
		return fmt.Errorf("send to %s: %w", w.name, err)
	}
	return nil
}

// saw returns the first frame that contains some bytes, or nil.
func (w *wire) saw(content []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.frames {
		if bytes.Contains(f, content) {
			return f
		}
	}
	return nil
}

// count is how many frames have been seen.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames)
}

// waits waits until bytes have been seen.
func (c cluster) waits(w *wire, content []byte, what string) {
	c.t.Helper()
	eventually.True(c.t, what+" arrives at "+w.name, func() bool { return w.saw(content) != nil })
}

// udpFrame is a frame with a datagram from port 1000.
func udpFrame(srcMAC, dstMAC, src, dst string, port uint16, payload []byte) []byte {
	udp := &layers.UDP{SrcPort: 1000, DstPort: layers.UDPPort(port)}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(src).To4(), DstIP: net.ParseIP(dst).To4()}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	return serialize(&layers.Ethernet{SrcMAC: hardware(srcMAC), DstMAC: hardware(dstMAC), EthernetType: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload(payload))
}

// serialize writes the layers of a frame, with lengths and checksums.
func serialize(parts ...gopacket.SerializableLayer) []byte {
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, parts...); err != nil {
		panic(err) // the test is wrong
	}
	return buf.Bytes()
}

func hardware(mac string) net.HardwareAddr {
	a, err := net.ParseMAC(mac)
	if err != nil {
		panic(err)
	}
	return a
}
