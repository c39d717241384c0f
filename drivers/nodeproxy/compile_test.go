package nodeproxy

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files")

func at(all ...string) (out []netip.AddrPort) {
	for _, a := range all {
		out = append(out, netip.MustParseAddrPort(a))
	}
	return out
}

// frontend is one of TCP, led everywhere from everywhere.
func frontend(name, addr string, providers ...string) Frontend {
	backends := BackendSet{Providers: at(providers...)}
	return Frontend{Name: name, Proto: unix.IPPROTO_TCP, Addr: at(addr)[0], Inside: backends, Outside: backends, Keeps: backends.Providers}
}

func with(s Frontend, change func(*Frontend)) Frontend { change(&s); return s }

// examples are Services of every kind.
var examples = map[string]Service{
	"cluster": {ID: "shop/web", Frontends: []Frontend{
		frontend("http", "10.96.0.10:80", "20.1.0.2:8080", "20.1.0.3:8081"), frontend("http", "[fd00:96::10]:80", "[fd00:20::2]:8080"),
	}},
	"affinity": {ID: "shop/web", Affinity: 3 * time.Hour, Frontends: []Frontend{
		frontend("http", "10.96.0.10:80", "20.1.0.2:8080", "20.1.0.3:8081"), frontend("http", "0.0.0.0:30080", "20.1.0.2:8080", "20.1.0.3:8081"),
	}},
	"nobody": {ID: "shop/web", Frontends: []Frontend{
		frontend("http", "10.96.0.10:80"), frontend("http", "[::]:30080"),
		with(frontend("dns", "10.96.0.10:53"), func(s *Frontend) { s.Proto, s.Inside.Silent, s.Outside.Silent = unix.IPPROTO_UDP, true, true }),
	}},
	"local": {ID: "shop/web", Frontends: []Frontend{
		with(frontend("http", "0.0.0.0:30080", "20.1.0.2:8080", "20.1.0.3:8081"), func(s *Frontend) { s.Outside.Providers = at("20.1.0.2:8080") }),
		with(frontend("http", "203.0.113.1:80", "20.1.0.3:8081"), func(s *Frontend) { s.Outside = BackendSet{Silent: true} }),
	}},
	"sources": {ID: "shop/web", Frontends: []Frontend{
		with(frontend("http", "203.0.113.1:80", "20.1.0.2:8080"), func(s *Frontend) {
			s.Sources = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("fd00::/8")}
		}),
		with(frontend("http", "[2001:db8::1]:80", "[fd00:20::2]:8080"), func(s *Frontend) { s.Sources = []netip.Prefix{} }),
		with(frontend("sctp", "[2001:db8::1]:81"), func(s *Frontend) {
			s.Proto, s.Sources = unix.IPPROTO_SCTP, []netip.Prefix{netip.MustParsePrefix("fd00::/8")}
		}),
	}},
}

func TestGoldenPrograms(t *testing.T) {
	for name, s := range examples {
		path, got := filepath.Join("testdata", name+".nft"), compile(s).String()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What nobody can be led to, nft need not hear of.
func TestUnknownProtocols(t *testing.T) {
	s := Service{ID: "a/b", Frontends: []Frontend{with(frontend("x", "10.96.0.1:1", "20.1.0.2:1"), func(s *Frontend) { s.Proto = unix.IPPROTO_ICMP }), {}}}
	if got := compile(s).String(); got != "" {
		t.Errorf("a program of\n%s", got)
	}
}
