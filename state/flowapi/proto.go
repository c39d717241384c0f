package flowapi

import (
	"strconv"
	"strings"
)

// protocols are the IP protocols that have names here.
var protocols = map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}

// ProtoName is an IP protocol as records name it: its name, or its number.
func ProtoName(proto uint8) string {
	if name, ok := protocols[proto]; ok {
		return name
	}
	return strconv.Itoa(int(proto))
}

// ProtoNumber reads the protocol of a record or a question: a name, or a number of IP's.
func ProtoNumber(name string) (uint8, bool) {
	for proto, known := range protocols {
		if strings.EqualFold(name, known) {
			return proto, true
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return uint8(n), err == nil
}
