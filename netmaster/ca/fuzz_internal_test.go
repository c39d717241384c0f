package ca

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzParseBundle: whatever a netmaster or the disk gives, a bundle that is taken can sign.
func FuzzParseBundle(f *testing.F) {
	good, err := newBundle(false, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"epoch":1,"keys":[{"id":"a","secret":"AAAA"}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBundle(text)
		if err != nil {
			return
		}
		if len(b.Keys) == 0 || b.Epoch < 1 || (b.Cert != "") != (b.authority != nil) {
			t.Errorf("taken: %s", text)
		}
	})
}
