package systemtests

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// patience bounds what is waited for; nothing takes that long when all is well.
const patience = 30 * time.Second

// within runs f in a container's network namespace: the sockets it opens stay there.
func (c cluster) within(container lab.Container, f func() error) error {
	c.t.Helper()
	h, err := c.Host(container.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	return nsenter.Network(fmt.Sprintf("/proc/%d/root%s", h.PID(), container.Netns), f)
}

// provide has a container answer at port 8080 with its name: to each line of a TCP
// connection, and to each datagram.
func (c cluster) provide(container lab.Container) {
	c.t.Helper()
	for _, address := range []string{container.IPv4, container.IPv6} {
		var tcp net.Listener
		var udp net.PacketConn
		at := net.JoinHostPort(address, "8080")
		err := c.within(container, func() (err error) {
			if tcp, err = net.Listen("tcp", at); err == nil {
				udp, err = net.ListenPacket("udp", at)
			}
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { tcp.Close(); udp.Close() })
		go func() {
			for {
				conn, err := tcp.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					for in := bufio.NewScanner(conn); in.Scan(); {
						fmt.Fprintln(conn, container.Name)
					}
				}()
			}
		}()
		go func() {
			for b := make([]byte, 100); ; {
				_, from, err := udp.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = udp.WriteTo([]byte(container.Name+"\n"), from)
			}
		}()
	}
}

// dial opens a connection from inside a container.
func (c cluster) dial(from lab.Container, network, address string) (conn net.Conn, err error) {
	c.t.Helper()
	err = c.within(from, func() error {
		d := net.Dialer{Timeout: patience}
		conn, err = d.DialContext(context.WithoutCancel(c.t.Context()), network, address)
		return err
	})
	return conn, err
}

// ask sends a line and returns the answer.
func ask(conn net.Conn, within time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, "who"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// who opens a connection to ask who answers. A datagram may be lost, so nobody waits
// long for the answer to one.
func (c cluster) who(from lab.Container, network, address string) (string, error) {
	c.t.Helper()
	conn, err := c.dial(from, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if network == "udp" {
		return ask(conn, time.Second)
	}
	return ask(conn, patience)
}
