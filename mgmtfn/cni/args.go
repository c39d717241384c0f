package cni

import "strings"

// ParseArgs splits CNI_ARGS ("K=V;K=V"); a part without "=" is skipped, keys may come
// in any order.
func ParseArgs(args string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(args, ";") {
		if k, v, ok := strings.Cut(part, "="); ok {
			out[strings.TrimSpace(k)] = v
		}
	}
	return out
}
