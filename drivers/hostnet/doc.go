// Package hostnet keeps the host's own side of the container network as planned: the
// addresses of the host's ports, routes through them, translation of addresses on the
// way out, and what the kernel must be told to forward.
//
// Everything carries a mark: routes have the protocol number RouteProtocol, the rules
// are a table named Table of their own. What carries the mark and is not in the plan is
// removed; everything else is somebody else's and is left alone.
package hostnet
