package libopenflow

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func (a Actions) parseController(arg, whole string) (Actions, error) {
	c := controllerAction{maxLen: MaxLenFull, reason: ReasonAction}
	_, hasColon := strings.CutPrefix(strings.ToLower(whole), "controller:")
	if hasColon {
		v, err := parseUint(arg, 16)
		return a.OutputController(uint16(v)), err
	}
	tokens, err := splitTop(arg, ",")
	if err != nil {
		return "", err
	}
	for _, t := range tokens {
		k, v, _ := strings.Cut(t, "=")
		var n uint64
		switch k {
		case "max_len":
			n, err = parseUint(v, 16)
			c.maxLen = uint16(n)
		case "id":
			n, err = parseUint(v, 16)
			c.id = uint16(n)
		case "reason":
			c.reason, err = parseReason(v)
		case "userdata":
			var raw []byte
			raw, err = hex.DecodeString(strings.ReplaceAll(v, ".", ""))
			c.userdata = string(raw)
		case "pause":
			c.pause = true
		case "meter_id":
			n, err = parseUint(v, 32)
			c.meter = uint32(n)
		default:
			err = fmt.Errorf("unknown option")
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
	}
	return a.controller(c), nil
}

func parseReason(s string) (PacketInReason, error) {
	for r := PacketInReason(0); ; r++ {
		if r.String() == s {
			return r, nil
		}
		if r == 255 {
			return 0, fmt.Errorf("unknown reason %q", s)
		}
	}
}

func (a Actions) parseConjunction(arg string) (Actions, error) {
	id, rest, ok1 := strings.Cut(arg, ",")
	clause, n, ok2 := strings.Cut(strings.TrimSpace(rest), "/")
	i, err1 := strconv.ParseUint(id, 0, 32)
	k, err2 := strconv.ParseUint(clause, 10, 8)
	m, err3 := strconv.ParseUint(n, 10, 8)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil || k < 1 {
		return "", fmt.Errorf("expected conjunction(id,clause/clauses)")
	}
	return a.Conjunction(uint32(i), uint8(k-1), uint8(m)), nil
}

// indexOf finds a name in a list, or reads a number.
func indexOf(names []string, s string) (uint16, error) {
	if i := slices.Index(names, s); i >= 0 {
		return uint16(i), nil
	}
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q: expected one of %s", s, strings.Join(names, ", "))
	}
	return uint16(v), nil
}

func (a Actions) parseMultipath(arg string) (Actions, error) {
	p := strings.Split(arg, ",")
	if len(p) != 6 {
		return "", fmt.Errorf("expected six arguments")
	}
	fields, err1 := indexOf(hashNames, p[0])
	basis, err2 := parseUint(p[1], 16)
	alg, err3 := indexOf(algNames, p[2])
	links, err4 := parseUint(p[3], 17)
	x, err5 := parseUint(p[4], 32)
	dst, err6 := parseSubfield(p[5])
	for _, err := range [...]error{err1, err2, err3, err4, err5, err6} {
		if err != nil {
			return "", err
		}
	}
	if links < 1 || links > 0x10000 {
		return "", fmt.Errorf("%q: expected 1 to 65536 links", p[3])
	}
	return a.Multipath(Multipath{
		Fields: HashFields(fields), Basis: uint16(basis), Algorithm: MultipathAlgorithm(alg),
		Links: uint32(links), Arg: uint32(x), Dst: dst,
	}), nil
}

func (a Actions) parseBundle(arg string, load bool) (Actions, error) {
	head, members, ok := strings.Cut(arg, "members:")
	if !ok {
		head, members, ok = strings.Cut(arg, "slaves:")
	}
	p := strings.Split(strings.TrimSuffix(head, ","), ",")
	if want := map[bool]int{false: 4, true: 5}[load]; !ok || len(p) != want || p[3] != "ofport" {
		return "", fmt.Errorf("expected fields, basis, algorithm, ofport and members")
	}
	fields, err1 := indexOf(hashNames, p[0])
	basis, err2 := parseUint(p[1], 16)
	alg, err3 := indexOf(bundleNames, p[2])
	for _, err := range [...]error{err1, err2, err3} {
		if err != nil {
			return "", err
		}
	}
	b := Bundle{Fields: HashFields(fields), Basis: uint16(basis), Algorithm: BundleAlgorithm(alg)}
	if load {
		dst, err := parseSubfield(p[4])
		if err != nil {
			return "", err
		}
		b.Dst = dst
	}
	for m := range strings.SplitSeq(members, ",") {
		if m == "" {
			continue
		}
		port, err := parsePort16(m)
		if err != nil {
			return "", err
		}
		b.Members = append(b.Members, port)
	}
	return a.Bundle(b), nil
}

func (a Actions) parseCheckPktLarger(whole string) (Actions, error) {
	n, dst, ok := strings.Cut(strings.TrimPrefix(whole, "check_pkt_larger("), ")->")
	v, err := parseUint(n, 16)
	if err != nil || !ok {
		return "", fmt.Errorf("expected check_pkt_larger(bytes)->bit")
	}
	s, err := parseSubfield(dst)
	if err == nil && s.N != 1 {
		err = fmt.Errorf("%q: expected one bit", dst)
	}
	return a.CheckPktLarger(uint16(v), s), err
}

func (a Actions) parseCT(arg string, depth int) (Actions, error) {
	if depth <= 0 {
		return "", fmt.Errorf("nested more than %d deep", maxNesting)
	}
	tokens, err := splitTop(arg, ",")
	if err != nil {
		return "", err
	}
	var c CT
	for _, t := range tokens {
		if err := c.parse(t, depth); err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
	}
	return a.CT(c), nil
}

// parse reads one argument of ct.
func (c *CT) parse(t string, depth int) (err error) {
	k, v, _ := strings.Cut(t, "=")
	var n uint64
	switch {
	case t == "commit":
		c.Commit = true
	case t == "force":
		c.Force = true
	case k == "table":
		n, err = parseUint(v, 8)
		c.Recirc, c.Table = true, uint8(n)
	case k == "zone" && isDigit(v):
		n, err = parseUint(v, 16)
		c.Zone = uint16(n)
	case k == "zone":
		c.ZoneFrom, err = parseSubfield(v)
	case t == "alg=ftp":
		c.ALG = algFTP
	case t == "alg=tftp":
		c.ALG = algTFTP
	case k == "alg":
		n, err = parseUint(v, 16)
		c.ALG = uint16(n)
	case t == "nat":
		c.NAT.Kind = NATExisting
	case strings.HasPrefix(t, "nat("):
		c.NAT, err = parseNAT(strings.TrimSuffix(t[4:], ")"))
	case strings.HasPrefix(t, "exec("):
		c.Exec, err = parseActions(strings.TrimSuffix(t[5:], ")"), depth-1)
	default:
		err = fmt.Errorf("unknown argument")
	}
	return err
}

func parseNAT(s string) (n NAT, err error) {
	tokens, err := splitTop(s, ",")
	if err != nil {
		return n, err
	}
	n.Kind = NATExisting
	for _, t := range tokens {
		k, v, _ := strings.Cut(t, "=")
		switch k {
		case "src":
			n.Kind = NATSource
			err = n.parseRange(v)
		case "dst":
			n.Kind = NATDest
			err = n.parseRange(v)
		case "persistent":
			n.Flags |= NATPersistent
		case "hash":
			n.Flags |= NATHash
		case "random":
			n.Flags |= NATRandom
		default:
			err = fmt.Errorf("%s: unknown argument of nat", t)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// parseRange reads "addr[-addr][:port[-port]]", with IPv6 addresses in brackets when
// a port follows.
func (n *NAT) parseRange(s string) error {
	addrs, ports := s, ""
	if i := strings.LastIndexByte(s, ']'); i >= 0 {
		addrs = s[:i+1]
		ports = strings.TrimPrefix(s[i+1:], ":")
	} else if strings.Count(s, ":") == 1 {
		addrs, ports, _ = strings.Cut(s, ":")
	}
	lo, hi, _ := strings.Cut(addrs, "-")
	for _, x := range [...]struct {
		text string
		addr *netip.Addr
	}{{lo, &n.Min}, {hi, &n.Max}} {
		if x.text == "" {
			continue
		}
		a, err := netip.ParseAddr(strings.Trim(x.text, "[]"))
		if err != nil || a.Zone() != "" {
			return fmt.Errorf("%q: expected an address", x.text)
		}
		*x.addr = a
	}
	from, to, _ := strings.Cut(ports, "-")
	for _, x := range [...]struct {
		text string
		port *uint16
	}{{from, &n.MinPort}, {to, &n.MaxPort}} {
		if x.text == "" {
			continue
		}
		v, err := parseUint(x.text, 16)
		if err != nil {
			return err
		}
		*x.port = uint16(v)
	}
	return nil
}
