package contivmodel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Limits of the tag ranges in the global settings.
const (
	MaxVLAN       = 4095  // highest end of a VLAN range; 0 and 4095 are never handed out
	MaxVNI        = 65535 // highest end of a VXLAN range
	MaxVNISpread  = 16000 // most that the ends of a VXLAN range may lie apart
	maxPktTag     = 16777216
	maxVLANDigits = 4
	maxVNIDigits  = 8
)

// TagRange is a run of tags, both ends included.
type TagRange struct{ Low, High int }

// String is low-high.
func (r TagRange) String() string { return fmt.Sprintf("%d-%d", r.Low, r.High) }

// Contains reports whether tag lies in the range.
func (r TagRange) Contains(tag int) bool { return r.Low <= tag && tag <= r.High }

// tagRangeSyntax reads LOW-HIGH of at most digits decimal digits each.
func tagRangeSyntax(s string, digits int) (TagRange, bool) {
	low, high, ok := strings.Cut(s, "-")
	a, good := decimal(low, digits)
	b, fine := decimal(high, digits)
	return TagRange{Low: a, High: b}, ok && good && fine
}

func decimal(s string, digits int) (int, bool) {
	if s == "" || len(s) > digits || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// ParseVLANs reads the VLAN range of the global settings: 1 ≤ low ≤ high ≤ 4095.
func ParseVLANs(s string) (TagRange, error) {
	r, ok := tagRangeSyntax(s, maxVLANDigits)
	if !ok || r.Low < 1 || r.Low > r.High || r.High > MaxVLAN {
		return TagRange{}, errs.New(errs.Invalid, "vlans %q is not a range within 1-%d", s, MaxVLAN)
	}
	return r, nil
}

// ParseVXLANs reads the VXLAN range: 1 ≤ low ≤ high ≤ 65535, high − low ≤ 16000.
func ParseVXLANs(s string) (TagRange, error) {
	r, ok := tagRangeSyntax(s, maxVNIDigits)
	if !ok || r.Low < 1 || r.Low > r.High || r.High > MaxVNI {
		return TagRange{}, errs.New(errs.Invalid, "vxlans %q is not a range within 1-%d", s, MaxVNI)
	}
	if r.High-r.Low > MaxVNISpread {
		return TagRange{}, errs.New(errs.Invalid, "vxlans %q spans more than %d", s, MaxVNISpread+1)
	}
	return r, nil
}
