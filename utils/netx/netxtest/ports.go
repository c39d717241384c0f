package netxtest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreeAddress is a loopback address and port for a server that cannot be given a
// listener, and that may come back after a restart. The port is below those that the
// kernel gives to connections (ip_local_port_range, 32768 and up by default), so that
// none of the many that other tests make can take it meanwhile.
func FreeAddress(t testing.TB) string {
	t.Helper()
	const low, high = 20000, 32768
	for range 100 {
		port := strconv.Itoa(low + rand.IntN(high-low))
		// Tests of other packages run at the same time, and must not take the port while its
		// server is down. An abstract socket goes with the process, however that ends.
		claim, err := net.Listen("unix", "@contiv-test-port-"+port)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = claim.Close() })
		addr := net.JoinHostPort("127.0.0.1", port)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return addr
	}
	t.Fatalf("no free port of 100 tried between %d and %d", low, high-1)
	return ""
}

// FreePort is the port of a FreeAddress.
func FreePort(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
