package libopenflow

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseInstructions reads what follows "actions=" in the syntax of ovs-ofctl.
func ParseInstructions(s string) (Instructions, error) {
	i, err := parseInstructions(s, maxNesting)
	if err != nil {
		return "", fmt.Errorf("actions: %w", err)
	}
	return i, nil
}

func parseInstructions(s string, depth int) (Instructions, error) {
	tokens, err := splitTop(s, ",")
	if err != nil {
		return "", err
	}
	var i Instructions
	var apply Actions
	for n, t := range tokens {
		name, arg := cutAction(t)
		switch name {
		case "drop":
			if len(tokens) != 1 {
				return "", fmt.Errorf("drop: expected nothing before or after it")
			}
		case "goto_table":
			v, err := parseUint(arg, 8)
			if err != nil {
				return "", fmt.Errorf("%s: %w", t, err)
			}
			i = i.Goto(uint8(v))
		case "write_metadata":
			v, err := parseField(FieldMetadata, arg)
			if err != nil {
				return "", fmt.Errorf("%s: %w", t, err)
			}
			i = i.WriteMetadata(v.value.lo, v.mask.lo)
		case "clear_actions":
			i = i.ClearActions()
		case "meter":
			v, err := parseUint(arg, 32)
			if err != nil {
				return "", fmt.Errorf("%s: %w", t, err)
			}
			i = i.Meter(uint32(v))
		case "write_actions":
			a, err := parseActions(arg, depth-1)
			if err != nil {
				return "", err
			}
			i = i.WriteActions(a)
		case "instruction":
			raw, err := hex.DecodeString(arg)
			typ, _, rest, ok := cutTLV(string(raw))
			if err != nil || !ok || rest != "" || instrRank(typ) != instrRankUnknown {
				return "", fmt.Errorf("%s: expected one instruction of an unknown type in hexadecimal", t)
			}
			i += Instructions(raw)
		default:
			if apply, err = apply.parse(name, arg, tokens[n], depth); err != nil {
				return "", fmt.Errorf("%s: %w", t, err)
			}
		}
	}
	return i.Apply(apply), nil
}

func parseActions(s string, depth int) (Actions, error) {
	if depth <= 0 {
		return "", fmt.Errorf("nested more than %d deep", maxNesting)
	}
	tokens, err := splitTop(s, ",")
	if err != nil {
		return "", err
	}
	var a Actions
	for _, t := range tokens {
		name, arg := cutAction(t)
		if name == "drop" && len(tokens) == 1 {
			return "", nil
		}
		if a, err = a.parse(name, arg, t, depth); err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
	}
	return a, nil
}

// cutAction splits "name:argument" and "name(argument)".
func cutAction(t string) (name, arg string) {
	i := strings.IndexAny(t, ":(")
	if i < 0 {
		return t, ""
	}
	name, arg = t[:i], t[i+1:]
	if t[i] == '(' && strings.HasSuffix(arg, ")") {
		arg = arg[:len(arg)-1]
	}
	return name, arg
}

// parse appends one action; whole is its text.
func (a Actions) parse(name, arg, whole string, depth int) (Actions, error) {
	switch name {
	case "output":
		return a.parseOutput(arg, whole)
	case "controller", "CONTROLLER":
		return a.parseController(arg, whole)
	case "set_field":
		return a.parseSetField(arg)
	case "load":
		return a.parseLoad(arg)
	case "move":
		src, dst, err := parseArrow(arg)
		if err == nil && src.N != dst.N {
			err = fmt.Errorf("expected as many bits on both sides")
		}
		return a.Move(src, dst), err
	case "resubmit":
		return a.parseResubmit(arg, whole)
	case "ct":
		return a.parseCT(arg, depth)
	case "learn":
		return a.parseLearn(arg)
	case "conjunction":
		return a.parseConjunction(arg)
	case "multipath":
		return a.parseMultipath(arg)
	case "bundle", "bundle_load":
		return a.parseBundle(arg, name == "bundle_load")
	case "check_pkt_larger":
		return a.parseCheckPktLarger(whole)
	case "clone":
		inner, err := parseActions(arg, depth-1)
		return a.Clone(inner), err
	case "unknown":
		raw, err := hex.DecodeString(arg)
		if err == nil {
			err = checkActions(raw, depth)
		}
		return a + Actions(raw), err
	}
	if out, ok := a.parsePlain(name, arg); ok {
		return out, nil
	}
	if out, ok, err := a.parseNumber(name, arg); ok {
		return out, err
	}
	if port, err := parsePort(whole); err == nil {
		return a.Output(port), nil
	}
	return "", fmt.Errorf("unknown action")
}

// parsePlain appends an action without argument.
func (a Actions) parsePlain(name, arg string) (Actions, bool) {
	if arg != "" {
		return "", false
	}
	switch name {
	case "dec_ttl":
		return a.DecTTL(), true
	case "pop_vlan", "strip_vlan":
		return a.PopVLAN(), true
	case "ct_clear":
		return a.CTClear(), true
	case "exit":
		return a.nxPlain(nxExit), true
	case "pop_queue":
		return a.nxPlain(nxPopQueue), true
	case "dec_mpls_ttl":
		return a + "\x00\x10\x00\x08\x00\x00\x00\x00", true
	}
	return "", false
}

// nxPlain appends a Nicira action without content.
func (a Actions) nxPlain(subtype uint16) Actions {
	return a + Actions(append(nxHeader(nil, subtype, 16), make([]byte, 6)...))
}

// parseNumber appends an action of the standard with one number.
func (a Actions) parseNumber(name, arg string) (out Actions, ok bool, err error) {
	type numbered struct {
		typ  uint16
		bits int // size of the number on the wire
	}
	x, ok := map[string]numbered{
		"group": {actGroup, 32}, "set_queue": {actSetQueue, 32}, "push_vlan": {actPushVLAN, 16},
		"push_mpls": {actPushMPLS, 16}, "pop_mpls": {actPopMPLS, 16}, "set_mpls_ttl": {actSetMPLSTTL, 8},
		"mod_nw_ttl": {actSetNwTTL, 8},
	}[name]
	if !ok {
		return "", false, nil
	}
	v, err := parseUint(arg, x.bits)
	if err != nil {
		return "", true, err
	}
	b := actionHeader(nil, x.typ, 8)
	b = binary.BigEndian.AppendUint32(b, uint32(v)<<(32-x.bits))
	return a + Actions(b), true, nil
}

func (a Actions) parseOutput(arg, whole string) (Actions, error) {
	if strings.HasPrefix(whole, "output(") {
		kv, err := keyValues(arg)
		if err != nil {
			return "", err
		}
		port, err := parsePort16(kv["port"])
		if err != nil {
			return "", err
		}
		n, err := parseUint(kv["max_len"], 32)
		return a.OutputTruncated(port, uint32(n)), err
	}
	if port, err := parsePort(arg); err == nil {
		return a.Output(port), nil
	}
	s, err := parseSubfield(arg)
	if err != nil {
		return "", fmt.Errorf("expected a port or a field: %w", err)
	}
	return a.OutputReg(s), nil
}

// parseArrow reads "source->destination".
func parseArrow(s string) (src, dst Subfield, err error) {
	l, r, ok := strings.Cut(s, "->")
	if !ok {
		return src, dst, fmt.Errorf("expected ->")
	}
	if src, err = parseSubfield(l); err != nil {
		return src, dst, err
	}
	dst, err = parseSubfield(r)
	return src, dst, err
}

func (a Actions) parseSetField(arg string) (Actions, error) {
	i := strings.LastIndex(arg, "->")
	if i < 0 {
		return "", fmt.Errorf("expected ->")
	}
	f := fieldNames.set[arg[i+2:]]
	if f == FieldNone {
		return "", fmt.Errorf("unknown field %q", arg[i+2:])
	}
	if f == FieldInPort16 {
		f = FieldInPort
	}
	v, err := parseField(f, arg[:i])
	if err != nil {
		return "", err
	}
	return a.SetField(v), nil
}

func (a Actions) parseLoad(arg string) (Actions, error) {
	l, r, ok := strings.Cut(arg, "->")
	if !ok {
		return "", fmt.Errorf("expected ->")
	}
	dst, err := parseSubfield(r)
	if err != nil {
		return "", err
	}
	v, err := parseUint(l, min(64, int(dst.N)))
	if err != nil {
		return "", err
	}
	return a.Load(dst, v), nil
}

func (a Actions) parseResubmit(arg, whole string) (Actions, error) {
	port, table := uint16(resubmitInPort), uint64(0xff)
	parts := []string{arg}
	if strings.HasPrefix(whole, "resubmit(") {
		parts = strings.Split(arg, ",")
	}
	var err error
	if p := strings.TrimSpace(parts[0]); p != "" {
		if port, err = parsePort16(p); err != nil {
			return "", err
		}
	}
	if len(parts) > 1 && parts[1] != "" {
		if table, err = parseUint(strings.TrimSpace(parts[1]), 8); err != nil {
			return "", err
		}
	}
	switch {
	case len(parts) == 3 && parts[2] == "ct":
		return a.resubmit(nxResubmitCT, port, uint8(table)), nil
	case len(parts) > 2:
		return "", fmt.Errorf("expected resubmit(port,table)")
	}
	return a.ResubmitPort(port, uint8(table)), nil
}

// keyValues reads "a=1,b,c=2"; a key without value has an empty one.
func keyValues(s string) (map[string]string, error) {
	tokens, err := splitTop(s, ",")
	if err != nil {
		return nil, err
	}
	kv := map[string]string{}
	for _, t := range tokens {
		k, v, _ := strings.Cut(t, "=")
		kv[k] = v
	}
	return kv, nil
}
