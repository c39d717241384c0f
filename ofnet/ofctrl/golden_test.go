package ofctrl_test

import (
	"os"
	"strings"
	"testing"
)

// goldenFlows returns the flows of the codec's golden file.
func goldenFlows(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("../../libopenflow/testdata/flows.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}
