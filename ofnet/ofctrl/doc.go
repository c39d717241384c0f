// Package ofctrl is the OpenFlow 1.3 channel to one switch. It connects, keeps the
// connection alive, sends changes and dumps what the switch has. It knows nothing of
// pipelines: what to send is the caller's.
//
// [Dial] prefers the management socket of a bridge, "unix:<rundir>/<bridge>.mgmt":
// it exists as long as the bridge does, needs no Controller row in the database and
// so never makes Open vSwitch flush its flows.
//
//	conn, err := ofctrl.Dial(ctx, ofctrl.Config{Target: "unix:/run/openvswitch/br0.mgmt", Log: log})
//	…
//	err = conn.DumpFlows(ctx, 0, 0, func(s of.FlowStats) error { have[s.Key()] = s.Flow; return nil })
//	err = conn.Bundle(ctx, mods)
//
// A [Conn] lives until it fails or is closed, and is of no use after that: Done tells
// when, Err why. Reconnecting is dialling again, dumping and sending the difference;
// nothing of an old connection is kept.
//
// # Order
//
// One goroutine reads, and messages are handled in the order they come. The calls of
// a Conn may be made from several goroutines; each call's messages go out in order.
// Replies find their call by transaction id, so an error names the message that the
// switch refused ([MessageError]).
package ofctrl
