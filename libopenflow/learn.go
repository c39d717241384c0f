package libopenflow

import "encoding/binary"

// Learn is the learn action: the packet adds or changes a flow in another table.
type Learn struct {
	Table       uint8
	Priority    uint16
	Cookie      uint64
	IdleTimeout uint16 // s; 0 none
	HardTimeout uint16 // s; 0 none
	FinIdle     uint16 // idle timeout after a TCP FIN or RST, s; 0 unchanged
	FinHard     uint16 // hard timeout after a TCP FIN or RST, s; 0 unchanged
	Flags       LearnFlags
	Specs       []LearnSpec
}

// LearnFlags are options of a Learn.
type LearnFlags uint16

// Learn flags.
const (
	LearnSendRemoved   LearnFlags = 1 // as FlowSendRemoved, in the learned flow
	LearnDeleteLearned LearnFlags = 2 // learned flows go when the learning flow goes
)

// LearnSpec is one part of a learned flow.
type LearnSpec struct {
	kind  uint16 // dst and src bits of the header
	n     uint16
	src   Subfield
	value word
	dst   Subfield
}

const (
	learnSrcImmediate = 1 << 13
	learnDstMatch     = 0
	learnDstLoad      = 1 << 11
	learnDstOutput    = 2 << 11
	learnNBits        = 0x7ff
)

// LearnMatchField makes the learned flow match dst with the value of src in the
// learning packet; both have the same number of bits.
func LearnMatchField(dst, src Subfield) LearnSpec {
	return LearnSpec{kind: learnDstMatch, n: dst.N, src: src, dst: dst}
}

// LearnMatch makes the learned flow match dst with the constant v.
func LearnMatch(dst Subfield, v uint64) LearnSpec {
	return LearnSpec{kind: learnSrcImmediate | learnDstMatch, n: dst.N, value: word{lo: v}.and(ones(int(dst.N))), dst: dst}
}

// LearnLoadField makes the learned flow load the value that src has in the learning
// packet into dst.
func LearnLoadField(src, dst Subfield) LearnSpec {
	return LearnSpec{kind: learnDstLoad, n: dst.N, src: src, dst: dst}
}

// LearnLoad makes the learned flow load the constant v into dst.
func LearnLoad(v uint64, dst Subfield) LearnSpec {
	return LearnSpec{kind: learnSrcImmediate | learnDstLoad, n: dst.N, value: word{lo: v}.and(ones(int(dst.N))), dst: dst}
}

// LearnOutput makes the learned flow output to the port that src holds in the
// learning packet.
func LearnOutput(src Subfield) LearnSpec {
	return LearnSpec{kind: learnDstOutput, n: src.N, src: src}
}

// Learn adds or changes a flow by the packet's content.
func (a Actions) Learn(l Learn) Actions {
	b := nxHeader(make([]byte, 0, 96), nxLearn, 0)
	b = binary.BigEndian.AppendUint16(b, l.IdleTimeout)
	b = binary.BigEndian.AppendUint16(b, l.HardTimeout)
	b = binary.BigEndian.AppendUint16(b, l.Priority)
	b = binary.BigEndian.AppendUint64(b, l.Cookie)
	b = binary.BigEndian.AppendUint16(b, uint16(l.Flags))
	b = append(b, l.Table, 0)
	b = binary.BigEndian.AppendUint16(b, l.FinIdle)
	b = binary.BigEndian.AppendUint16(b, l.FinHard)
	for _, s := range l.Specs {
		if !s.ok() {
			return a + refused
		}
		b = s.append(b)
	}
	return a + Actions(setLen(b, 0))
}

func (s LearnSpec) ok() bool {
	if s.kind&learnSrcImmediate == 0 && (!s.src.ok() || s.src.N != s.n) {
		return false
	}
	return s.kind&learnDstOutput != 0 || s.dst.ok() && s.dst.N == s.n
}

func (s LearnSpec) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, s.kind|s.n)
	if s.kind&learnSrcImmediate != 0 {
		b = appendWord(b, s.value, (int(s.n)+15)/16*2)
	} else {
		b = appendLearnField(b, s.src)
	}
	if s.kind&learnDstOutput == 0 {
		b = appendLearnField(b, s.dst)
	}
	return b
}

// appendLearnField writes a field and offset.
func appendLearnField(b []byte, f Subfield) []byte {
	b = binary.BigEndian.AppendUint32(b, fields[f.Field].sub)
	return binary.BigEndian.AppendUint16(b, f.Offset)
}
