package flowapi

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/utils/errs"
)

func sample() Record {
	return Record{
		ID: "1", Start: time.Unix(1000, 0), End: time.Unix(1010, 0), Hosts: []string{"h1", "h2"}, Tenant: "blue", Verdict: Rejected, Proto: "tcp",
		Src:       End{Address: netip.MustParseAddr("10.1.1.2"), Port: 40000, Endpoint: "net.blue-e1", Name: "shop/web-1", Group: "web"},
		Dst:       End{Address: netip.MustParseAddr("10.1.2.3"), Port: 5432, Endpoint: "net.red-e2", Name: "db", Group: "db", Tenant: "red"},
		Service:   &Service{Name: "data", Address: netip.MustParseAddr("10.1.9.9"), Port: 54},
		Decisions: []Decision{{At: AtSource, By: ByDefault, Verdict: Allowed}, {At: AtDestination, By: ByRule, Policy: "guard", Rule: "7", Verdict: Rejected}},
	}
}

// A filter selects what each of its parts selects, and both directions if asked to.
func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		f    Filter
		want bool
	}{
		"nothing asked":                {Filter{}, true},
		"tenant":                       {Filter{Tenants: []string{"green", "blue"}}, true},
		"tenant of an end":             {Filter{Tenants: []string{"red"}}, true},
		"another tenant":               {Filter{Tenants: []string{"green"}}, false},
		"part of a name":               {Filter{From: "web-"}, true},
		"group":                        {Filter{From: "web", To: "db"}, true},
		"the other way":                {Filter{From: "db", To: "web"}, false},
		"either way":                   {Filter{From: "db", To: "web", Either: true}, true},
		"prefix":                       {Filter{From: "10.1.1.0/24", To: "10.1.2.0/24"}, true},
		"another prefix":               {Filter{From: "10.1.2.0/24"}, false},
		"address":                      {Filter{To: "10.1.2.3"}, true},
		"part of an address is none":   {Filter{To: "10.1.2.30"}, false},
		"service":                      {Filter{To: "data"}, true},
		"address of the service":       {Filter{To: "10.1.9.9"}, true},
		"denied are rejected ones too": {Filter{Verdict: "denied"}, true},
		"allowed":                      {Filter{Verdict: "allowed"}, false},
		"policy":                       {Filter{Rule: "guar"}, true},
		"rule":                         {Filter{Rule: "guard/7"}, true},
		"another rule":                 {Filter{Rule: "guard/8"}, false},
		"default":                      {Filter{Rule: "default"}, true},
		"protocol":                     {Filter{Proto: "TCP", Port: 5432}, true},
		"port of the service":          {Filter{Port: 54}, true},
		"the sender's port":            {Filter{Port: 40000}, false},
		"host":                         {Filter{Host: "h2"}, true},
		"another host":                 {Filter{Host: "h3"}, false},
		"ended before":                 {Filter{Since: time.Unix(1011, 0)}, false},
		"ended after":                  {Filter{Since: time.Unix(1005, 0), Until: time.Unix(1006, 0)}, true},
		"began after":                  {Filter{Until: time.Unix(999, 0)}, false},
	} {
		r := sample()
		if got := c.f.Match(&r); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	open := sample()
	open.End = time.Time{}
	if f := (Filter{Since: time.Unix(2000, 0)}); !f.Match(&open) {
		t.Error("an open connection is over")
	}
}

// What is put into a query comes out of it.
func TestFilterQuery(t *testing.T) {
	for _, f := range []Filter{{}, {
		Tenants: []string{"a", "b"}, From: "x&y=z", To: "10.0.0.0/8", Either: true, Verdict: "denied", Rule: "p/1", Proto: "udp", Port: 65535, Host: "h",
		Since: time.Unix(1, 5).UTC(), Until: time.Unix(2, 0).UTC(), After: "i", Follow: true, Limit: 9,
	}} {
		q, err := url.ParseQuery(f.Values().Encode())
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseFilter(q)
		if diff := cmp.Diff(f, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	for query, want := range map[string]string{
		"port=0": "port", "port=70000": "port", "limit=-1": "limit", "limit=100001": "limit", "since=yesterday": "since", "follow=perhaps": "follow",
		"verdict=no": "verdict", "colour=red": "colour", "from=a&from=b": "from", "tenant=": "tenant", "to=" + strings.Repeat("x", 257): "to",
	} {
		q, _ := url.ParseQuery(query)
		if _, err := ParseFilter(q); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v", query, err)
		}
	}
}

// Whatever a query holds, it is refused or stays what it is.
func FuzzFilter(f *testing.F) {
	f.Add("from=a&port=1&since=2026-01-02T15:04:05Z&follow=1")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		one, err := ParseFilter(q)
		if err != nil {
			return
		}
		other, err := ParseFilter(one.Values())
		if diff := cmp.Diff(one.Values(), other.Values()); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
