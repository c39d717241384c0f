package libopenflow

import (
	"encoding/binary"
	"iter"
)

// MeterFlags give the units of a meter.
type MeterFlags uint16

// Meter flags. A meter has either MeterKbps or MeterPktps.
const (
	MeterKbps    MeterFlags = 1 // rates in kbit/s, bursts in kbit
	MeterPktps   MeterFlags = 2 // rates in packets/s, bursts in packets
	MeterBurst   MeterFlags = 4 // bursts are given
	MeterCollect MeterFlags = 8 // collect statistics
)

// Meter is one row of the meter table as a comparable value.
type Meter struct {
	ID    uint32 // 1…0xffff0000, or a virtual meter
	Flags MeterFlags
	Bands Bands
}

// BandType says what a band does with packets above its rate.
type BandType uint16

// Band types.
const (
	BandDrop BandType = 1
	BandDSCP BandType = 2 // raises the drop precedence in the DSCP
)

// Band is one rate of a meter.
type Band struct {
	Type       BandType
	Rate       uint32
	Burst      uint32
	Precedence uint8 // of BandDSCP
}

// Bands is a list of bands as on the wire (OpenFlow 1.3 §7.3.4.4).
type Bands string

// NewBands returns the empty list.
func NewBands() Bands { return "" }

const bandLen = 16

// Drop appends a band that drops what exceeds rate; burst is used with MeterBurst.
func (s Bands) Drop(rate, burst uint32) Bands {
	return s.Add(Band{Type: BandDrop, Rate: rate, Burst: burst})
}

// Add appends a band.
func (s Bands) Add(d Band) Bands {
	b := actionHeader(nil, uint16(d.Type), bandLen)
	b = binary.BigEndian.AppendUint32(b, d.Rate)
	b = binary.BigEndian.AppendUint32(b, d.Burst)
	return s + Bands(append(b, d.Precedence, 0, 0, 0))
}

// All iterates over the bands.
func (s Bands) All() iter.Seq[Band] {
	return func(yield func(Band) bool) {
		for r := (&reader{b: []byte(s)}); r.more(); {
			d := Band{Type: BandType(r.u16())}
			n := int(r.u16())
			d.Rate, d.Burst, d.Precedence = r.u32(), r.u32(), r.u8()
			r.skip(n - 13)
			if r.err != nil || !yield(d) {
				return
			}
		}
	}
}

// withoutBursts clears the bursts, which mean nothing without MeterBurst: the switch
// reports the rate there.
func (s Bands) withoutBursts() Bands {
	var out Bands
	for d := range s.All() {
		d.Burst = 0
		out = out.Add(d)
	}
	return out
}

// bands reads the n bytes of a band list and checks them.
func (r *reader) bands(n int) Bands {
	s := r.sub(n)
	all := string(s.b)
	for s.more() {
		s.skip(2)
		m := int(s.u16())
		if m < bandLen || m%8 != 0 {
			s.fail(malformed("meter band of %d bytes", m))
		}
		s.skip(m - 4)
	}
	r.fail(s.err)
	if s.err != nil {
		return ""
	}
	return Bands(all)
}

// MeterCommand says what a MeterMod does.
type MeterCommand uint16

// Meter commands.
const (
	MeterAdd    MeterCommand = 0
	MeterModify MeterCommand = 1
	MeterDelete MeterCommand = 2
)

// MeterMod changes the meter table (OpenFlow 1.3 §7.3.4.4).
type MeterMod struct {
	Command MeterCommand
	Meter   Meter
}

// AddMeter returns the meter-mod that adds m; a meter of that id is an error.
func AddMeter(m Meter) *MeterMod { return &MeterMod{Command: MeterAdd, Meter: m} }

// ModifyMeter returns the meter-mod that replaces the meter of m's id.
func ModifyMeter(m Meter) *MeterMod { return &MeterMod{Command: MeterModify, Meter: m} }

// DeleteMeter returns the meter-mod that removes a meter, and with it every flow that
// uses it; MeterAll removes all.
func DeleteMeter(id uint32) *MeterMod {
	return &MeterMod{Command: MeterDelete, Meter: Meter{ID: id}}
}

// Type returns TypeMeterMod.
func (*MeterMod) Type() MsgType { return TypeMeterMod }

func (m *MeterMod) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(m.Command))
	b = binary.BigEndian.AppendUint16(b, uint16(m.Meter.Flags))
	b = binary.BigEndian.AppendUint32(b, m.Meter.ID)
	return append(b, m.Meter.Bands...), nil
}

func decodeMeterMod(r *reader) *MeterMod {
	m := &MeterMod{Command: MeterCommand(r.u16())}
	m.Meter.Flags, m.Meter.ID = MeterFlags(r.u16()), r.u32()
	m.Meter.Bands = r.bands(len(r.b))
	return m
}
