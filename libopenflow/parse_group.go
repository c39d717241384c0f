package libopenflow

import (
	"fmt"
	"slices"
	"strings"
)

// ParseGroup reads a group in the syntax of ovs-ofctl.
func ParseGroup(s string) (Group, error) {
	g, err := parseGroup(s)
	if err != nil {
		return Group{}, fmt.Errorf("group: %w", err)
	}
	return g, nil
}

func parseGroup(s string) (g Group, err error) {
	head, rest, more := strings.Cut(s, "bucket=")
	tokens, err := splitTop(head, ", \t")
	if err != nil {
		return g, err
	}
	for _, t := range tokens {
		k, v, _ := strings.Cut(t, "=")
		switch k {
		case "group_id":
			var n uint64
			n, err = parseUint(v, 32)
			g.ID = uint32(n)
		case "type":
			i := slices.Index(groupTypeNames[:], v)
			if i < 0 {
				err = fmt.Errorf("expected one of %s", strings.Join(groupTypeNames[:], ", "))
			}
			g.Type = GroupType(max(i, 0))
		default:
			err = fmt.Errorf("unknown property")
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", t, err)
		}
	}
	for more {
		var one string
		one, rest, more = strings.Cut(rest, "bucket=")
		k, err := parseBucket(one, g.Type)
		if err != nil {
			return g, fmt.Errorf("bucket=%s: %w", one, err)
		}
		g.Buckets = g.Buckets.AddBucket(k)
	}
	return g, nil
}

func parseBucket(s string, t GroupType) (Bucket, error) {
	k := Bucket{WatchPort: PortAny, WatchGroup: GroupAny}
	if t == GroupTypeSelect {
		k.Weight = 1
	}
	tokens, err := splitTop(s, ",")
	if err != nil {
		return k, err
	}
	var acts []string
	for _, tok := range tokens {
		name, v, _ := strings.Cut(tok, ":")
		var n uint64
		switch name {
		case "weight":
			n, err = parseUint(v, 16)
			k.Weight = uint16(n)
			if t != GroupTypeSelect {
				err = fmt.Errorf("weight: only buckets of type select have one")
			}
		case "watch_port":
			k.WatchPort, err = parsePort(v)
		case "watch_group":
			n, err = parseUint(v, 32)
			k.WatchGroup = uint32(n)
		case "bucket_id":
			// Not a part of OpenFlow 1.3; the switch numbers them itself.
		default:
			acts = append(acts, strings.TrimPrefix(tok, "actions="))
		}
		if err != nil {
			return k, err
		}
	}
	k.Actions, err = parseActions(strings.Join(acts, ","), maxNesting)
	return k, err
}
