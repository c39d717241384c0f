package libopenflow

import (
	"fmt"
	"strings"
)

func (a Actions) parseLearn(arg string) (Actions, error) {
	tokens, err := splitTop(arg, ",")
	if err != nil {
		return "", err
	}
	l := Learn{Table: 1, Priority: defaultPriority}
	for _, t := range tokens {
		ok, err := l.parseOption(t)
		if err == nil && !ok {
			var s LearnSpec
			s, err = parseLearnSpec(t)
			l.Specs = append(l.Specs, s)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
	}
	return a.Learn(l), nil
}

// parseOption reads a token that is no spec; ok is false for specs.
func (l *Learn) parseOption(t string) (ok bool, err error) {
	k, v, _ := strings.Cut(t, "=")
	var n uint64
	switch k {
	case "table":
		n, err = parseUint(v, 8)
		l.Table = uint8(n)
	case "idle_timeout", "hard_timeout", "fin_idle_timeout", "fin_hard_timeout", "priority":
		n, err = parseUint(v, 16)
		*map[string]*uint16{
			"idle_timeout": &l.IdleTimeout, "hard_timeout": &l.HardTimeout, "fin_idle_timeout": &l.FinIdle,
			"fin_hard_timeout": &l.FinHard, "priority": &l.Priority,
		}[k] = uint16(n)
	case "cookie":
		l.Cookie, err = parseUint(v, 64)
	case "send_flow_rem":
		l.Flags |= LearnSendRemoved
	case "delete_learned":
		l.Flags |= LearnDeleteLearned
	default:
		return false, nil
	}
	return true, err
}

func parseLearnSpec(t string) (LearnSpec, error) {
	if out, ok := strings.CutPrefix(t, "output:"); ok {
		s, err := parseSubfield(out)
		return LearnOutput(s), err
	}
	if load, ok := strings.CutPrefix(t, "load:"); ok {
		return parseLearnLoad(load)
	}
	left, right, hasValue := strings.Cut(t, "=")
	dst, err := parseSubfield(left)
	if err != nil {
		return LearnSpec{}, err
	}
	if !hasValue {
		return LearnMatchField(dst, dst), nil
	}
	if src, err := parseSubfield(right); err == nil {
		if src.N != dst.N {
			return LearnSpec{}, fmt.Errorf("expected as many bits on both sides")
		}
		return LearnMatchField(dst, src), nil
	}
	var v word
	if dst == dst.Field.All() {
		v, err = parseOne(dst.Field, right)
	} else {
		v, err = parseWord(right, int(dst.N))
	}
	return LearnSpec{kind: learnSrcImmediate | learnDstMatch, n: dst.N, value: v, dst: dst}, err
}

func parseLearnLoad(s string) (LearnSpec, error) {
	l, r, ok := strings.Cut(s, "->")
	if !ok {
		return LearnSpec{}, fmt.Errorf("expected ->")
	}
	dst, err := parseSubfield(r)
	if err != nil {
		return LearnSpec{}, err
	}
	if isDigit(l) {
		v, err := parseWord(l, int(dst.N))
		return LearnSpec{kind: learnSrcImmediate | learnDstLoad, n: dst.N, value: v, dst: dst}, err
	}
	src, err := parseSubfield(l)
	if err == nil && src.N != dst.N {
		err = fmt.Errorf("expected as many bits on both sides")
	}
	return LearnLoadField(src, dst), err
}
