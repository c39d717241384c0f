package libopenflow

import (
	"os"
	"strings"
	"testing"
)

// goldenFlows returns the lines of testdata/flows.txt: flows as ovs-ofctl 3.1 printed
// them after they were installed in a switch.
func goldenFlows(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/flows.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestFlowText(t *testing.T) {
	for _, line := range goldenFlows(t) {
		f, err := ParseFlow(line)
		if err != nil {
			t.Errorf("%s\n\t%v", line, err)
			continue
		}
		if got := f.String(); got != line {
			t.Errorf("text of a flow:\n got %s\nwant %s", got, line)
		}
	}
}
