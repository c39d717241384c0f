package redact

import (
	"slices"
	"strings"
	"testing"
)

const planted = "hunter2-Pa55"

// TestRedact: secrets in each form go, and what is around them stays.
func TestRedact(t *testing.T) {
	for _, in := range []string{
		`keep {"password":"` + planted + `"}`, "keep password=" + planted, "keep --bgp-password " + "x password: '" + planted + " b'", "keep http://user:" + planted + "@192.0.2.1:2379/x",
		"keep Authorization: Bearer " + planted + "long", "keep -----BEGIN EC PRIVATE KEY-----\n" + planted + "\n-----END EC PRIVATE KEY-----", "keep -----BEGIN PRIVATE KEY-----\n" + planted,
		"keep CONTIV_JOIN_TOKEN=" + planted, "keep eyJhbGciOiJFZERTQSJ9." + planted + ".x", "keep basic " + planted + "aaaa",
	} {
		if got := Text(in); strings.Contains(got, planted) || !strings.HasPrefix(got, "keep") || !strings.Contains(got, Removed) {
			t.Errorf("%q: %q", in, got)
		}
	}
	for _, in := range []string{
		`{"keep":1,"password":"` + planted + `"}`, `{"keep":[{"tokenHash":["` + planted + `"]}]}`, `{"keep":{"Sealed":{"a":"` + planted + `"}}}`,
		`{"keep":"http://a:` + planted + `@b"}`, `keep {"secret": "` + planted + `"`,
	} {
		if got := string(JSON([]byte(in))); strings.Contains(got, planted) || !strings.Contains(got, "keep") {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := string(JSON([]byte(`{"key":"default:web","groupKey":"g","n":9007199254740993,"token":"","passwords":false}`))); strings.Contains(got, Removed) || !strings.Contains(got, "9007199254740993") {
		t.Errorf("what is no secret: %s", got)
	}
	got := Flags([]string{"netmaster", "--etcd-password", planted, "--join-token=" + planted, "--etcd-endpoints", "http://u:" + planted + "@h", "--mode", "docker"})
	if text := strings.Join(got, " "); strings.Contains(text, planted) || !slices.Contains(got, "--etcd-password") || !slices.Contains(got, "docker") {
		t.Errorf("flags: %v", got)
	}
}

// FuzzRedact: whatever it is given, it ends, and a secret that is named does not remain.
func FuzzRedact(f *testing.F) {
	f.Add("a", "b")
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + "\npassword=" + planted + "\n" + after
		if got := Text(text); strings.Contains(got, planted) && !strings.Contains(before+after, planted) {
			t.Errorf("%q: %q", text, got)
		}
		JSON([]byte(text))
	})
}
