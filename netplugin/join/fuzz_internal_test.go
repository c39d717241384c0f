package join

import (
	"strings"
	"testing"
)

// FuzzParseToken: a token that is taken has all its parts, and an error shows none of it.
func FuzzParseToken(f *testing.F) {
	f.Add("CONTIV1." + strings.Repeat("0a", 32) + ".abc.secret")
	f.Add("CONTIV1...")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := parseToken(text)
		switch {
		case err == nil && (len(tok.hash) != 64 || tok.id == "" || tok.secret == ""):
			t.Errorf("taken: %q", text)
		case err != nil && len(text) > 30 && strings.Contains(err.Error(), text):
			t.Errorf("the error shows the token: %v", err)
		}
	})
}
