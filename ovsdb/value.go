package ovsdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// UUID is a row's identity, in its usual text form.
type UUID string

// NamedUUID refers, inside one transaction, to a row that Insert gave that name.
type NamedUUID string

// Set is the value of a column that holds any number of values. Order means nothing.
type Set []any

// Map is the value of a map column. Keys and values are atoms.
type Map map[any]any

// Row holds columns by name.
type Row map[string]any

// String returns a string column, "" when absent or empty.
func (r Row) String(column string) string {
	s, _ := r.one(column).(string)
	return s
}

// Int returns an integer column and whether it has a value.
func (r Row) Int(column string) (int64, bool) {
	n, ok := r.one(column).(int64)
	return n, ok
}

// Bool returns a boolean column and whether it has a value.
func (r Row) Bool(column string) (value, ok bool) {
	value, ok = r.one(column).(bool)
	return value, ok
}

// UUIDs returns the references in a column.
func (r Row) UUIDs(column string) []UUID {
	var out []UUID
	for _, v := range r.set(column) {
		if u, ok := v.(UUID); ok {
			out = append(out, u)
		}
	}
	return out
}

// Ints returns the integers of a set, sorted.
func (r Row) Ints(column string) []int64 {
	var out []int64
	for _, v := range r.set(column) {
		if n, ok := v.(int64); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Strings returns the strings in a column, sorted.
func (r Row) Strings(column string) []string {
	var out []string
	for _, v := range r.set(column) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out
}

// Map returns the string-to-string pairs of a map column; never nil.
func (r Row) Map(column string) map[string]string {
	out := map[string]string{}
	m, _ := r[column].(Map)
	for k, v := range m {
		ks, ok1 := k.(string)
		vs, ok2 := v.(string)
		if ok1 && ok2 {
			out[ks] = vs
		}
	}
	return out
}

func (r Row) one(column string) any {
	if s, ok := r[column].(Set); ok {
		if len(s) == 1 {
			return s[0]
		}
		return nil
	}
	return r[column]
}

func (r Row) set(column string) Set {
	switch v := r[column].(type) {
	case nil:
		return nil
	case Set:
		return v
	default:
		return Set{v}
	}
}

// StringMap turns Go strings into a Map.
func StringMap(m map[string]string) Map {
	out := make(Map, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// StringSet turns Go strings into a Set.
func StringSet(values ...string) Set {
	out := make(Set, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// encode turns a value into its JSON form (RFC 7047 section 5.1).
func encode(v any) (any, error) {
	switch v := v.(type) {
	case string, bool, int, int64, uint32, uint16, float64:
		return v, nil
	case UUID:
		return []any{"uuid", string(v)}, nil
	case NamedUUID:
		return []any{"named-uuid", string(v)}, nil
	case Set:
		elems := make([]any, len(v))
		for i, e := range v {
			enc, err := encode(e)
			if err != nil {
				return nil, err
			}
			elems[i] = enc
		}
		return []any{"set", elems}, nil
	case Map:
		pairs := make([]any, 0, len(v))
		for k, e := range v {
			ek, err := encode(k)
			if err != nil {
				return nil, err
			}
			ee, err := encode(e)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, []any{ek, ee})
		}
		return []any{"map", pairs}, nil
	}
	return nil, fmt.Errorf("ovsdb has no value of Go type %T", v)
}

// decode turns a JSON value into a Go value.
func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return fromJSON(v)
}

func fromJSON(v any) (any, error) {
	switch v := v.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("number %q: %w", v.String(), err)
		}
		return f, nil
	case []any:
		return fromTagged(v)
	}
	return nil, fmt.Errorf("unexpected %T in a column", v)
}

// fromTagged decodes ["uuid", x], ["named-uuid", x], ["set", [...]], ["map", [[k, v], ...]].
func fromTagged(v []any) (any, error) {
	if len(v) != 2 {
		return nil, fmt.Errorf("expected a tagged pair, got %d elements", len(v))
	}
	tag, _ := v[0].(string)
	switch tag {
	case "uuid":
		s, ok := v[1].(string)
		if !ok {
			return nil, fmt.Errorf("uuid is not a string")
		}
		return UUID(s), nil
	case "named-uuid":
		s, ok := v[1].(string)
		if !ok {
			return nil, fmt.Errorf("named-uuid is not a string")
		}
		return NamedUUID(s), nil
	}
	elems, ok := v[1].([]any)
	if !ok {
		return nil, fmt.Errorf("%q without an array", tag)
	}
	switch tag {
	case "set":
		out := make(Set, 0, len(elems))
		for _, e := range elems {
			a, err := atom(e)
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
		return out, nil
	case "map":
		out := make(Map, len(elems))
		for _, e := range elems {
			pair, ok := e.([]any)
			if !ok || len(pair) != 2 {
				return nil, fmt.Errorf("map element is not a pair")
			}
			k, err := atom(pair[0])
			if err != nil {
				return nil, err
			}
			val, err := atom(pair[1])
			if err != nil {
				return nil, err
			}
			out[k] = val
		}
		return out, nil
	}
	return nil, fmt.Errorf("unknown tag %q", tag)
}

func atom(v any) (any, error) {
	a, err := fromJSON(v)
	if err != nil {
		return nil, err
	}
	switch a.(type) {
	case Set, Map:
		return nil, fmt.Errorf("a set or map inside a set or map")
	}
	return a, nil
}

// applyDiff computes a column's value after an update2 "modify" (ovsdb-server(7),
// section 4.1.14): a scalar or optional column carries its new value; a set the
// elements that come or go; a map the pairs that come, go or change.
func applyDiff(kind columnKind, old, diff any) any {
	switch kind {
	case kindSet:
		return toggle(asSet(old), asSet(diff))
	case kindMap:
		base, _ := old.(Map)
		change, _ := diff.(Map)
		out := make(Map, len(base)+len(change))
		for k, v := range base {
			out[k] = v
		}
		for k, v := range change {
			if was, ok := out[k]; ok && was == v {
				delete(out, k)
			} else {
				out[k] = v
			}
		}
		return out
	}
	return diff
}

func toggle(old, diff Set) Set {
	out := slices.Clone(old)
	for _, d := range diff {
		if i := slices.Index(out, d); i >= 0 {
			out = slices.Delete(out, i, i+1)
		} else {
			out = append(out, d)
		}
	}
	return out
}

func asSet(v any) Set {
	switch v := v.(type) {
	case nil:
		return nil
	case Set:
		return v
	}
	return Set{v}
}
