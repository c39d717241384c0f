package netx

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func TestChoose(t *testing.T) {
	local := []Address{
		{"lo", netip.MustParseAddr("127.0.0.1")},
		{"lo", netip.MustParseAddr("10.255.0.1")},
		{"docker0", netip.MustParseAddr("172.17.0.1")},
		{"contivh1", netip.MustParseAddr("172.19.0.1")},
		{"eth0", netip.MustParseAddr("10.0.0.1")},
		{"eth1", netip.MustParseAddr("10.0.1.1")},
	}
	tests := []struct {
		name          string
		named, routed []netip.Addr
		local         []Address
		want          string // empty: NotFound
	}{
		{"host name first", addrs("10.0.1.1"), addrs("10.0.0.1"), local, "10.0.1.1"},
		{"host name is loopback", addrs("127.0.1.1", "127.0.0.1"), addrs("10.0.1.1"), local, "10.0.1.1"},
		{"host name is not configured here", addrs("192.0.2.1"), addrs("10.0.1.1"), local, "10.0.1.1"},
		{"host name is Contiv's own", addrs("172.19.0.1"), addrs("10.0.1.1"), local, "10.0.1.1"},
		{"mapped form", addrs("::ffff:10.0.1.1"), nil, local, "10.0.1.1"},
		{"route over a container bridge", nil, addrs("172.17.0.1", "10.0.1.1"), local, "10.0.1.1"},
		{"first interface", nil, nil, local, "10.0.0.1"},
		{"loopback only", addrs("127.0.0.1"), nil, local[:1], ""},
		{"nothing", nil, nil, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose(tt.named, tt.routed, tt.local)
			if tt.want == "" {
				if !errs.Is(err, errs.NotFound) {
					t.Fatalf("choose = %v, %v, want a NotFound error", got, err)
				}
				return
			}
			if err != nil || got != netip.MustParseAddr(tt.want) {
				t.Errorf("choose = %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// TestDefaultHostIP: whatever this machine has, the answer is one of its addresses.
func TestDefaultHostIP(t *testing.T) {
	got, err := DefaultHostIP(t.Context())
	if errs.Is(err, errs.NotFound) {
		return // a machine with loopback only
	}
	if err != nil {
		t.Fatal(err)
	}
	local, err := LocalAddresses()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range local {
		if a.Addr == got {
			return
		}
	}
	t.Errorf("DefaultHostIP = %v, which is not in %v", got, local)
}

func TestParseListen(t *testing.T) {
	tests := []struct {
		text, want string // want empty: Invalid
	}{
		{"0.0.0.0:9999", "0.0.0.0:9999"},
		{":9999", "0.0.0.0:9999"},
		{"10.0.0.1:1", "10.0.0.1:1"},
		{"[::]:65535", "[::]:65535"},
		{"10.0.0.1", ""},
		{"10.0.0.1:0", ""},
		{"10.0.0.1:65536", ""},
		{"10.0.0.1:http", ""},
		{"host:9999", ""},
		{"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseListen(tt.text)
			if tt.want == "" {
				if !errs.Is(err, errs.Invalid) {
					t.Errorf("ParseListen = %v, %v, want an Invalid error", got, err)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("ParseListen = %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestCheckListen(t *testing.T) {
	for text, want := range map[string]string{
		"0.0.0.0:9999": "", ":1": "", "localhost:65535": "", "[::1]:80": "",
		"":           `"" is not host:port`,
		"localhost":  `"localhost" is not host:port`,
		"a:b:c":      `"a:b:c" is not host:port`,
		"a:0":        `"a:0" has port "0", expected 1 to 65535`,
		"a:65536":    `"a:65536" has port "65536", expected 1 to 65535`,
		"a:http":     `"a:http" has port "http", expected 1 to 65535`,
		"10.0.0.1:-": `"10.0.0.1:-" has port "-", expected 1 to 65535`,
	} {
		err := CheckListen(text)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("CheckListen(%q) = %v, want %q", text, err, want)
		}
	}
}
