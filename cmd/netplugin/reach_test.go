package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What containers are kept from: the usual ports, and what the flags say.
func TestContainerReach(t *testing.T) {
	for _, c := range []struct {
		name, open, closed, rest, api string
		endpoints                     []string
		port                          int
		want                          string // ranges of TCP, of UDP where they differ, and tunnels
		err                           string
	}{
		{name: "as they are", rest: ":9090", port: 4789, want: "tcp 2379-2380 6666 8300-8600 9001-9003 9090 9999; same; [4789]"},
		{
			name: "other ports", rest: "10.0.0.1:19090", endpoints: []string{"http://10.0.0.1:12379", "https://store"}, port: 8472, closed: "7000-7001/tcp",
			want: "tcp 443 2379-2380 6666 7000-7001 8300-8600 9001-9003 9090 9999 12379 19090; udp 443 2379-2380 6666 8300-8600 9001-9003 9090 9999 12379 19090; [4789 8472]",
		},
		{name: "some are open", rest: ":9090", open: "9090, 8300-8600,4789/udp,9999/tcp", port: 4789, want: "tcp 2379-2380 6666 9001-9003; udp 2379-2380 6666 9001-9003 9999; []"},
		{name: "all are open", rest: ":9090", open: "all", port: 4789, want: "tcp; same; [4789]"},
		{name: "the API server", rest: ":9090", api: "https://10.0.0.1:8443", port: 4789, want: "tcp 2379-2380 6666 8300-8442 8444-8600 9001-9003 9090 9999; udp 2379-2380 6666 8300-8600 9001-9003 9090 9999; [4789]"},
		{name: "not a port", open: "http", err: `--container-reach "http": expected a port`},
		{name: "ends before it begins", open: "9-8", err: `"9-8"`},
		{name: "no such protocol", closed: "9/sctp", err: `--control-ports "9/sctp": expected tcp or udp`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &options{restAddress: c.rest, vxlanPort: c.port}
			o.reach.open, o.reach.closed, o.store.Endpoints = c.open, c.closed, c.endpoints
			r, err := o.containerReach(c.api)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, expected %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text := map[uint8]string{tcp: "tcp", udp: "udp"}
			for _, p := range r.closed {
				text[p.Proto] += " " + fmt.Sprint(p.Low)
				if p.High != p.Low {
					text[p.Proto] += "-" + fmt.Sprint(p.High)
				}
			}
			if text[udp][3:] == text[tcp][3:] {
				text[udp] = "same"
			}
			slices.Sort(r.tunnels)
			if got := fmt.Sprintf("%s; %s; %v", text[tcp], text[udp], r.tunnels); got != c.want {
				t.Errorf("%s\nexpected %s", got, c.want)
			}
		})
	}
}
