package netx

import "testing"

func TestSourceOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64", "@": "@",
	} {
		if got := SourceOf(remote); got != want {
			t.Errorf("SourceOf(%s) = %s, want %s", remote, got, want)
		}
	}
}

func TestHostOf(t *testing.T) {
	for remote, want := range map[string]string{"192.0.2.1:1": "192.0.2.1", "[2001:db8::4]:1": "2001:db8::4", "@": "@", "": ""} {
		if got := HostOf(remote); got != want {
			t.Errorf("HostOf(%s) = %s, want %s", remote, got, want)
		}
	}
}
