package libopenflow

import (
	"fmt"
	"strings"
)

// ParseFlow reads a flow in the syntax of ovs-ofctl: what Flow.String writes, the
// lines of "ovs-ofctl dump-flows" with or without statistics, and what "ovs-ofctl
// add-flow" takes as far as this package knows the fields and actions. Statistics
// (duration, n_packets, …) are ignored. A flow without "actions=" has none.
func ParseFlow(s string) (Flow, error) {
	head, acts, hasActions := cutActions(s)
	tokens, err := splitTop(head, ", \t\r\n")
	if err != nil {
		return Flow{}, fmt.Errorf("flow %w", err)
	}
	f := Flow{Priority: defaultPriority}
	var match []string
	for _, t := range tokens {
		ok, err := f.parseProperty(t)
		if err != nil {
			return Flow{}, fmt.Errorf("flow %s: %w", t, err)
		}
		if !ok {
			match = append(match, t)
		}
	}
	if f.Match, err = parseMatchTokens(match); err != nil {
		return Flow{}, fmt.Errorf("flow: %w", err)
	}
	if hasActions {
		if f.Instructions, err = ParseInstructions(acts); err != nil {
			return Flow{}, fmt.Errorf("flow: %w", err)
		}
	}
	return f, nil
}

// cutActions splits a flow at "actions=".
func cutActions(s string) (head, acts string, ok bool) {
	for _, name := range [...]string{"actions=", "action="} {
		if i := strings.Index(s, name); i >= 0 && (i == 0 || s[i-1] == ' ' || s[i-1] == ',' || s[i-1] == '\t') {
			return s[:i], strings.TrimSpace(s[i+len(name):]), true
		}
	}
	return s, "", false
}

// parseProperty reads a token that is no part of the match; ok is false for others.
func (f *Flow) parseProperty(t string) (ok bool, err error) {
	name, value, hasValue := strings.Cut(t, "=")
	if !hasValue {
		for i, n := range flowFlagNames {
			if name == n {
				f.Flags |= 1 << i
				return true, nil
			}
		}
		return false, nil
	}
	var v uint64
	switch name {
	case "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "importance":
	case "cookie":
		f.Cookie, err = parseUint(value, 64)
	case "table":
		v, err = parseUint(value, 8)
		f.Table = uint8(v)
	case "priority":
		v, err = parseUint(value, 16)
		f.Priority = uint16(v)
	case "idle_timeout":
		v, err = parseUint(value, 16)
		f.IdleTimeout = uint16(v)
	case "hard_timeout":
		v, err = parseUint(value, 16)
		f.HardTimeout = uint16(v)
	default:
		return false, nil
	}
	return true, err
}
