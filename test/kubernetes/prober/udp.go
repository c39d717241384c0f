package prober

import (
	"net"

	"golang.org/x/sys/unix"
)

// listenUDP listens on all addresses of both families.
func listenUDP(port int) (*net.UDPConn, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// answerUDP tells the name, from the address that was asked: a host has several.
func (s *Server) answerUDP(conn *net.UDPConn) error {
	b, control := make([]byte, 1500), make([]byte, unix.CmsgSpace(unix.SizeofInet6Pktinfo))
	for {
		_, n, _, from, err := conn.ReadMsgUDPAddrPort(b, control)
		if err != nil {
			return err
		}
		// What came with the question goes with the answer, but by any interface.
		if header := unix.CmsgLen(0); n >= header+unix.SizeofInet6Pktinfo {
			clear(control[header+16 : header+unix.SizeofInet6Pktinfo])
		}
		_, _, _ = conn.WriteMsgUDPAddrPort([]byte(s.name), control[:n], from) // who asks may have gone
	}
}
