package flowapi

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of a Filter.
const (
	maxText    = 256     // bytes of a string
	maxTenants = 1024    // names
	MaxLimit   = 100_000 // records
)

// texts are the strings of a Filter by their names in a query.
func (f *Filter) texts() map[string]*string {
	return map[string]*string{"from": &f.From, "to": &f.To, "verdict": &f.Verdict, "rule": &f.Rule, "proto": &f.Proto, "host": &f.Host, "after": &f.After}
}

func (f *Filter) times() map[string]*time.Time {
	return map[string]*time.Time{"since": &f.Since, "until": &f.Until}
}

func (f *Filter) flags() map[string]*bool {
	return map[string]*bool{"either": &f.Either, "follow": &f.Follow, "audited": &f.Audited}
}

// Values puts a filter into a query: what is empty is left out, times are RFC 3339.
func (f Filter) Values() url.Values {
	q := url.Values{}
	for _, t := range f.Tenants {
		q.Add("tenant", t)
	}
	for name, text := range f.texts() {
		if *text != "" {
			q.Set(name, *text)
		}
	}
	for name, at := range f.times() {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, set := range f.flags() {
		if *set {
			q.Set(name, "true")
		}
	}
	for name, n := range map[string]int{"port": int(f.Port), "limit": f.Limit} {
		if n != 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	return q
}

// ParseFilter reads a filter from a query. An error is of kind Invalid and names the
// parameter; one that is not known is an error, since ignoring it would show too much.
func ParseFilter(q url.Values) (Filter, error) {
	var f Filter
	for name, values := range q {
		if name == "tenant" {
			f.Tenants = values
			continue
		}
		if len(values) != 1 {
			return f, errs.New(errs.Invalid, "parameter %.40q is given %d times: expected once", name, len(values))
		}
		if err := f.set(name, values[0]); err != nil {
			return f, err
		}
	}
	return f, f.check()
}

func (f *Filter) set(name, value string) (err error) {
	if text, ok := f.texts()[name]; ok {
		*text = value
		return nil
	}
	if at, ok := f.times()[name]; ok {
		if *at, err = time.Parse(time.RFC3339, value); err != nil {
			return errs.New(errs.Invalid, "%s %.40q: expected a time like 2026-01-02T15:04:05Z", name, value)
		}
		return nil
	}
	if set, ok := f.flags()[name]; ok {
		if *set, err = strconv.ParseBool(value); err != nil {
			return errs.New(errs.Invalid, "%s %.40q: expected true or false", name, value)
		}
		return nil
	}
	switch name {
	case "port":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil || n == 0 {
			return errs.New(errs.Invalid, "port %.40q: expected 1 to 65535", value)
		}
		f.Port = uint16(n)
	case "limit":
		if f.Limit, err = strconv.Atoi(value); err != nil || f.Limit < 0 || f.Limit > MaxLimit {
			return errs.New(errs.Invalid, "limit %.40q: expected 0 to %d", value, MaxLimit)
		}
	default:
		return errs.New(errs.Invalid, "unknown parameter %.40q", name)
	}
	return nil
}

func (f *Filter) check() error {
	for name, text := range f.texts() {
		if len(*text) > maxText {
			return errs.New(errs.Invalid, "%s is longer than %d bytes", name, maxText)
		}
	}
	if len(f.Tenants) > maxTenants || slices.ContainsFunc(f.Tenants, func(t string) bool { return t == "" || len(t) > maxText }) {
		return errs.New(errs.Invalid, "tenant: expected at most %d names of 1 to %d bytes", maxTenants, maxText)
	}
	switch Verdict(f.Verdict) {
	case "", Allowed, Denied:
	default:
		return errs.New(errs.Invalid, "verdict %.40q: expected allowed or denied", f.Verdict)
	}
	return nil
}

// Match reports whether a filter selects a record. It does not look at After, Follow and Limit.
func (f *Filter) Match(r *Record) bool {
	forth := f.From == "" || r.Src.is(f.From)
	forth = forth && (f.To == "" || r.Dst.is(f.To) || r.Service.is(f.To))
	back := f.Either && (f.From == "" || r.Dst.is(f.From) || r.Service.is(f.From)) && (f.To == "" || r.Src.is(f.To))
	switch {
	case !forth && !back,
		len(f.Tenants) > 0 && !slices.ContainsFunc(r.Tenants(), func(t string) bool { return slices.Contains(f.Tenants, t) }),
		f.Verdict != "" && (r.Verdict == Allowed) != (Verdict(f.Verdict) == Allowed),
		f.Rule != "" && !slices.ContainsFunc(r.Decisions, func(d Decision) bool { return d.is(f.Rule) }),
		f.Proto != "" && !strings.EqualFold(f.Proto, r.Proto),
		f.Port != 0 && f.Port != r.Dst.Port && (r.Service == nil || f.Port != r.Service.Port),
		f.Audited && !r.Audited,
		f.Host != "" && !slices.Contains(r.Hosts, f.Host),
		!f.Since.IsZero() && !r.End.IsZero() && r.End.Before(f.Since),
		!f.Until.IsZero() && r.Start.After(f.Until):
		return false
	}
	return true
}

// Tenants are those of the record and of its ends, each once.
func (r *Record) Tenants() []string {
	var names []string
	for _, t := range []string{r.Tenant, r.Src.Tenant, r.Dst.Tenant} {
		if t != "" && !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	return names
}

// is reports whether text means the end: see Filter.From.
func (e *End) is(text string) bool {
	if means, ok := meansAddress(text, e.Address); ok {
		return means
	}
	return strings.Contains(e.Name, text) || strings.Contains(e.Endpoint, text) || e.Group == text
}

func (s *Service) is(text string) bool {
	if s == nil {
		return false
	}
	if means, ok := meansAddress(text, s.Address); ok {
		return means
	}
	return s.Name == text
}

// meansAddress reports whether text means an address; ok is false if it is none and no
// prefix.
func meansAddress(text string, a netip.Addr) (means, ok bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Contains(a), true
	}
	if other, err := netip.ParseAddr(text); err == nil {
		return other.Unmap() == a, true
	}
	return false, false
}

func (d *Decision) is(text string) bool {
	return strings.Contains(d.Policy, text) || d.Rule != "" && d.Policy+"/"+d.Rule == text || d.Policy == "" && d.By == text
}
