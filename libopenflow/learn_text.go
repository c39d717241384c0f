package libopenflow

func appendLearn(b []byte, r *reader) []byte {
	idle, hard, priority, cookie := r.u16(), r.u16(), r.u16(), r.u64()
	flags, table := LearnFlags(r.u16()), r.u8()
	r.skip(1)
	finIdle, finHard := r.u16(), r.u16()
	b = appendDec(append(b, "learn(table="...), uint64(table))
	for _, t := range [...]struct {
		name  string
		value uint16
	}{
		{",idle_timeout=", idle},
		{",hard_timeout=", hard},
		{",fin_idle_timeout=", finIdle},
		{",fin_hard_timeout=", finHard},
	} {
		if t.value != 0 {
			b = appendDec(append(b, t.name...), uint64(t.value))
		}
	}
	if priority != defaultPriority {
		b = appendDec(append(b, ",priority="...), uint64(priority))
	}
	if flags&LearnSendRemoved != 0 {
		b = append(b, ",send_flow_rem"...)
	}
	if flags&LearnDeleteLearned != 0 {
		b = append(b, ",delete_learned"...)
	}
	if cookie != 0 {
		b = appendHex(append(b, ",cookie="...), cookie)
	}
	for r.more() {
		s, ok := r.learnSpec()
		if !ok {
			break
		}
		b = s.appendText(append(b, ','))
	}
	return append(b, ')')
}

// learnSpec reads one spec; ok is false at the padding that ends the list.
func (r *reader) learnSpec() (s LearnSpec, ok bool) {
	if len(r.b) < 2 {
		return s, false
	}
	h := r.u16()
	if h == 0 {
		return s, false
	}
	s.kind, s.n = h&(learnSrcImmediate|learnDstLoad|learnDstOutput), h&learnNBits
	if s.kind&learnSrcImmediate != 0 {
		s.value = wordOf(r.take((int(s.n) + 15) / 16 * 2))
	} else {
		s.src = r.learnField(s.n)
	}
	if s.kind&learnDstOutput == 0 {
		s.dst = r.learnField(s.n)
	}
	if r.err == nil && !s.ok() {
		r.fail(malformed("learn spec %#x", h))
	}
	return s, r.err == nil
}

func (r *reader) learnField(n uint16) Subfield {
	h, ofs := r.u32(), r.u16()
	return Subfield{fieldOfSub(h), ofs, n}
}

func (s LearnSpec) appendText(b []byte) []byte {
	immediate := s.kind&learnSrcImmediate != 0
	switch {
	case s.kind&learnDstOutput != 0:
		return s.src.appendText(append(b, "output:"...))
	case s.kind&learnDstLoad != 0:
		b = append(b, "load:"...)
		if immediate {
			b = appendHexWord(b, s.value)
		} else {
			b = s.src.appendText(b)
		}
		return s.dst.appendText(append(b, "->"...))
	case immediate && s.dst == s.dst.Field.All():
		b = append(append(b, fields[s.dst.Field].name...), '=')
		return FieldValue{Field: s.dst.Field, value: s.value}.appendValue(b)
	case immediate:
		b = append(s.dst.appendText(b), '=')
		return appendHexWord(b, s.value)
	case s.src == s.dst:
		return s.dst.appendText(b)
	}
	b = append(s.dst.appendText(b), '=')
	return s.src.appendText(b)
}
