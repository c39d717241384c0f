package ofnet

import (
	"strings"
	"testing"
)

// The kernel looks into neighbor discovery messages only in flows that match their type
// and code: so all that look into them match both, and so do those that refuse the rest.
func TestNDInTheKernel(t *testing.T) {
	for mode, set := range hostModes {
		set.Kernel = true
		p, programs := hostFlows(t, set)
		programs["svc"] = p.Program(webService(vxNet1, 0))
		inside, refused := 0, 0
		for _, program := range programs {
			for _, f := range program.Flows {
				match, _, _ := strings.Cut(f.String(), " actions=")
				if !strings.Contains(match, ",nd_") {
					if strings.Contains(match, "icmp_code=0") && f.Priority == prioGeneral+1 {
						refused++
					}
					continue
				}
				inside++
				if !strings.Contains(match, "icmp_type=13") || !strings.Contains(match, "icmp_code=0") {
					t.Errorf("%s: looks into messages of any code: %s", mode, f.String())
				}
			}
		}
		if inside == 0 || refused != 4 {
			t.Errorf("%s: %d flows look into messages, %d refuse the rest, want 4", mode, inside, refused)
		}
	}
}
