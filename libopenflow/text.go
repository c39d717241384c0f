package libopenflow

import "strconv"

// utoa is the decimal form of v.
func utoa(v uint64) string { return strconv.FormatUint(v, 10) }
