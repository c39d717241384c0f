// Package libopenflow is a codec for OpenFlow 1.3 with the Nicira and ONF extensions
// of Open vSwitch. It turns messages into bytes and back and flows into the text of
// ovs-ofctl and back; it does no I/O and knows no switch. Import it as of.
//
// # Flows are values
//
// A [Flow] is a comparable Go value. Its [Match] and [Instructions] are strings that
// hold the bytes of the wire, in the one form that Open vSwitch itself uses when it
// reports its flows. So "is this flow in the switch as I want it?" is wanted == got,
// and a flow, a match or a [FlowKey] can be a map key:
//
//	drop := of.Flow{Table: 5, Priority: 110, Match: of.NewMatch().Dst(prefix)}
//	hop := of.Flow{
//		Table: 7, Priority: 100,
//		Match: of.NewMatch().Reg(2, vrf).Dst(netip.PrefixFrom(addr, 32)),
//		Instructions: of.NewInstructions().
//			Apply(of.NewActions().DecTTL().SetEthDst(mac).SetReg(5, port)).
//			Goto(9),
//	}
//
// The builders never fail and never change their receiver. What cannot be encoded,
// such as an IPv6 prefix for an IPv4 field, becomes something that every switch
// refuses, so that a mistake is an error message and never a wider match.
//
// # Text
//
// Flow.String gives exactly the line of "ovs-ofctl -O OpenFlow13 --no-stats
// dump-flows", and [ParseFlow] reads it. Golden files of flow programs are made of it.
//
// # Messages
//
// Every message is a [Message]; [Append] encodes one and [Decode] reads one. Decode
// takes bytes from anywhere: it checks every length, keeps what it does not know as
// bytes, and reports what cannot be right as an error that wraps [ErrMalformed].
package libopenflow
