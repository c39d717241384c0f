package daemon

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/version"
)

// DefaultLease is how long a leader that is gone without resigning keeps the lock.
const DefaultLease = 5 * time.Second

const (
	// holdRequests is how long a request waits for a leader (an election, a controller
	// that is loading, a leader that is restarting) before it is refused.
	holdRequests = 2 * time.Second
	// maxBody bounds the body of a request, in bytes.
	maxBody = 4 << 20
	// finishWithin is what requests that are being served get when the daemon stops,
	// leaveWithin what resigning and leaving the registry get, closeWithin what requests
	// that wait for the next leader get.
	finishWithin = 400 * time.Millisecond
	leaveWithin  = 250 * time.Millisecond
	closeWithin  = 200 * time.Millisecond
)

// Config is what a Daemon is made of.
type Config struct {
	// Listeners are where the API is served; the Daemon closes them.
	Listeners []net.Listener
	// Address is the internal address "ip:port": one under which the other netmasters
	// and all agents reach one of the Listeners. It is this process's name in the
	// cluster.
	Address string
	// OpenStore connects to the store. An error of kind Invalid ends the Daemon;
	// after any other it is called again.
	OpenStore func(context.Context) (objdb.Store, error)
	// WithStore runs beside everything else from when the store is open until the Daemon
	// ends; nil: nothing does.
	WithStore func(context.Context, objdb.Store)
	// NewController makes what serves while this process leads.
	NewController NewController
	// RPC is where agents report; nil: nowhere. The Daemon closes it. Members takes the
	// reports, and follows the registry; nil: the Daemon's own.
	RPC      net.Listener
	Members  *cluster.Members
	Security Security      // how clients are told apart
	Page     http.Handler  // what people see of this netmaster in a browser (package ui); nil: nothing
	Lease    time.Duration // of the leader lock; 0: DefaultLease
	Log      logrus.FieldLogger
	Metrics  *prometheus.Registry // nil: one of its own
	Version  version.Info
}

// Listen opens the listeners for an external address, "host:port", and an internal one,
// "ip:port": one listener if the first covers the second, else two.
func Listen(external, internal string) ([]net.Listener, error) {
	out := make([]net.Listener, 0, 2)
	addresses := []string{external}
	if !covers(external, internal) {
		addresses = append(addresses, internal)
	}
	for _, a := range addresses {
		l, err := net.Listen("tcp", a)
		if err != nil {
			for _, open := range out {
				open.Close()
			}
			return nil, errs.New(errs.Unavailable, "listen on %s: %w", a, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// covers reports whether who listens on address a is reached on address b, too.
func covers(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	_, portB, errB := net.SplitHostPort(b)
	if a == b || errA != nil || errB != nil {
		return a == b
	}
	ip := net.ParseIP(hostA)
	return portA == portB && (hostA == "" || ip != nil && ip.IsUnspecified())
}
