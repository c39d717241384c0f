package seal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func key(id string, fill byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{fill}, 32)} }

func TestSeal(t *testing.T) {
	keys := []Key{key("1", 1)}
	s := New("bgp", func() []Key { return keys })
	old, err := s.Seal([]byte("s3cret"))
	if err != nil || !Sealed(old) || !strings.HasPrefix(old, "sealed:v1:1:") || strings.Contains(old, "s3cret") {
		t.Fatalf("sealed %q: %v", old, err)
	}
	if again, _ := s.Seal([]byte("s3cret")); again == old {
		t.Error("the same secret sealed twice gives the same text")
	}
	keys = []Key{key("2", 2), key("1", 1)} // rotated
	if secret, err := s.Open(old); err != nil || string(secret) != "s3cret" {
		t.Errorf("with the old key: %q, %v", secret, err)
	}
	if text, _ := s.Seal(nil); !strings.HasPrefix(text, "sealed:v1:2:") {
		t.Errorf("sealed with an old key: %s", text)
	}
	refused := func(name string, s *Sealer, text string, kind errs.Kind) {
		t.Helper()
		if secret, err := s.Open(text); !errs.Is(err, kind) {
			t.Errorf("%s: opened to %q, %v", name, secret, err)
		}
	}
	refused("another purpose", New("ldap", s.keys), old, errs.Invalid)
	last := old[len(old)-6]
	changed := old[:len(old)-6] + string(map[bool]byte{true: 'B', false: 'A'}[last == 'A']) + old[len(old)-5:]
	refused("a changed text", s, changed, errs.Invalid)
	for _, text := range []string{"", "s3cret", "sealed:v1:1", "sealed:v1:1:", "sealed:v1:1:AAAA", "sealed:v1:1:%%%"} {
		refused("text "+text, s, text, errs.Invalid)
	}
	keys = []Key{key("3", 3)}
	refused("a key that is lost", s, old, errs.NotFound)
	keys = []Key{{ID: "1", Secret: bytes.Repeat([]byte{9}, 32)}}
	refused("another cluster's key", s, old, errs.Invalid)
	keys = nil
	if _, err := s.Seal([]byte("x")); err == nil {
		t.Error("sealed without a key")
	}
}

func FuzzOpen(f *testing.F) {
	s := New("bgp", func() []Key { return []Key{key("1", 1)} })
	good, _ := s.Seal([]byte("s3cret"))
	f.Add(good)
	f.Add("sealed:v1::")
	f.Fuzz(func(t *testing.T, text string) {
		if secret, err := s.Open(text); err == nil && string(secret) != "s3cret" {
			t.Errorf("%q opens to %q", text, secret)
		}
	})
}
