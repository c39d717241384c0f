package agent

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
)

// asQoS reads the QoS settings of a group's record. What cannot be
// read is left out, and named by the error.
func asQoS(g state.EndpointGroup) (ofnet.QoS, error) {
	var q ofnet.QoS
	rate, err := kilobits(g.Bandwidth)
	q.Rate = rate
	if 0 <= g.DSCP && g.DSCP <= 63 {
		q.DSCP = uint8(g.DSCP)
	} else {
		err = errors.Join(err, fmt.Errorf("DSCP %d: expected 0 to 63", g.DSCP))
	}
	if g.Burst < 0 || g.Burst > math.MaxInt32 {
		err = errors.Join(err, fmt.Errorf("burst %d: expected kbit from 0", g.Burst))
	} else if rate != 0 {
		q.Burst = uint32(g.Burst)
	}
	if err != nil {
		err = fmt.Errorf("group %s: %w", g.ID, err)
	}
	return q, err
}

// kilobits reads a bandwidth as "10 mbps": a number and a unit, whose first letter
// counts: g is 1024³ bit/s, m 1024², k 1024. The result is in kbit/s of 1000 bit/s,
// rounded down; the empty text is 0, which means no limit. A number that is too large becomes
// the largest.
func kilobits(s string) (uint32, error) {
	if s == "" {
		return 0, nil
	}
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(s)
	}
	n, err := strconv.ParseUint(s[:digits], 10, 64)
	if err != nil && digits == 0 {
		return 0, fmt.Errorf("bandwidth %q: expected a number and a unit", s)
	}
	unit, rest := 0.0, strings.ToLower(s[digits:])
	switch {
	case strings.Contains(rest, "g"):
		unit = 1 << 30
	case strings.Contains(rest, "m"):
		unit = 1 << 20
	case strings.Contains(rest, "k"):
		unit = 1 << 10
	default:
		return 0, fmt.Errorf("bandwidth %q: expected a unit with g, m or k", s)
	}
	return uint32(min(float64(n)*unit/1000, math.MaxUint32)), nil
}
