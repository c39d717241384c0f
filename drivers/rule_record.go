package drivers

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
)

// RuleOf reads a rule's record. The tenant is the first part of its id.
func RuleOf(rec state.PolicyRule) (Rule, error) {
	tenant, _, ok := strings.Cut(rec.RuleID, ":")
	bad := func(what string, value any, expected string) (Rule, error) {
		return Rule{}, fmt.Errorf("rule %q: %s %v: expected %s", rec.RuleID, what, value, expected)
	}
	within := func(v, from, to int) bool { return from <= v && v <= to }
	switch {
	case !ok || tenant == "":
		return bad("id", rec.RuleID, "<tenant>:…")
	case !within(rec.Priority, 1, 100):
		return bad("priority", rec.Priority, "1 to 100")
	case rec.Action != "allow" && rec.Action != "deny" && rec.Action != "reject":
		return bad("action", strconv.Quote(rec.Action), "allow, deny or reject")
	case rec.Mode != "" && rec.Mode != "audit":
		return bad("mode", strconv.Quote(rec.Mode), "audit or none")
	case !within(rec.SrcEndpointGroup, 0, math.MaxInt32) || !within(rec.DstEndpointGroup, 0, math.MaxInt32):
		return bad("groups", []int{rec.SrcEndpointGroup, rec.DstEndpointGroup}, "numbers from 0")
	case !within(rec.IPProtocol, 0, math.MaxUint8):
		return bad("protocol", rec.IPProtocol, "0 to 255")
	case !within(rec.SrcPort, 0, math.MaxUint16) || !within(rec.DstPort, 0, math.MaxUint16):
		return bad("ports", []int{rec.SrcPort, rec.DstPort}, "0 to 65535")
	case !ofnet.KnownFlags(rec.TCPFlags):
		return bad("TCP flags", strconv.Quote(rec.TCPFlags), "syn, syn,ack, ack, syn,!ack, !syn,ack or none")
	}
	r := Rule{Tenant: tenant, Audit: rec.Mode == "audit", AuditFile: rec.AuditFile, Rule: ofnet.Rule{
		ID: rec.RuleID, Priority: uint8(rec.Priority), Deny: rec.Action != "allow", Reject: rec.Action == "reject",
		SrcGroup: uint32(rec.SrcEndpointGroup), DstGroup: uint32(rec.DstEndpointGroup),
		Proto: uint8(rec.IPProtocol), SrcPort: uint16(rec.SrcPort), DstPort: uint16(rec.DstPort), Flags: rec.TCPFlags,
	}}
	var err error
	if r.Src, err = optionalPrefix(rec.SrcIPAddr); err != nil {
		return bad("source", strconv.Quote(rec.SrcIPAddr), "an address or a CIDR")
	}
	if r.Dst, err = optionalPrefix(rec.DstIPAddr); err != nil {
		return bad("destination", strconv.Quote(rec.DstIPAddr), "an address or a CIDR")
	}
	if r.Src.IsValid() && r.Dst.IsValid() && r.Src.Addr().Is4() != r.Dst.Addr().Is4() {
		return bad("addresses", rec.SrcIPAddr+" and "+rec.DstIPAddr, "one family")
	}
	return r, nil
}

// optionalPrefix reads an address, a CIDR or nothing.
func optionalPrefix(s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}
