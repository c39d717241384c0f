package contivmodel

import "testing"

// TestWrongType checks that a member of the wrong type is named as users write it, also
// one that several types of a network share.
func TestWrongType(t *testing.T) {
	for body, want := range map[string]string{
		`{"nwType":5}`:   "nwType: expected a string, got number",
		`{"subnet":5}`:   "subnet: expected a string, got number",
		`{"pktTag":"x"}`: "pktTag: expected an integer, got string",
	} {
		if _, err := NetworkKind().Decode("t:n", []byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
