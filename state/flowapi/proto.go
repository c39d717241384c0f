package flowapi

import (
	"strconv"
	"strings"
)

// ProtoNumber reads the protocol of a record or a question: a name, or a number of IP's.
func ProtoNumber(name string) (uint8, bool) {
	switch strings.ToLower(name) {
	case "icmp":
		return 1, true
	case "tcp":
		return 6, true
	case "udp":
		return 17, true
	case "icmpv6":
		return 58, true
	case "sctp":
		return 132, true
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return uint8(n), err == nil
}
