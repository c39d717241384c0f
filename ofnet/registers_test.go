package ofnet

import (
	"regexp"
	"strconv"
	"testing"
	"time"
)

// Flows neither set nor match values that are wider than a register's bits.
func TestRegistersHoldTheirValues(t *testing.T) {
	value := regexp.MustCompile(`(?:set_field:(0x[0-9a-f]+|\d+)(?:/0x[0-9a-f]+)?->reg(\d+))|[, ]reg(\d+)=(0x[0-9a-f]+|\d+)`)
	seen := map[int]bool{}
	for mode, set := range hostModes {
		p, programs := hostFlows(t, set)
		programs["svc"], programs["sticky"] = p.Program(webService(vxNet1, 0)), p.Program(renumbered(webService(vxNet1, time.Hour)))
		programs["vrf"], programs["rule"] = p.Program(VRFPolicy{VRF: 1, Generation: 1<<31 - 1}), p.Program(webRule)
		for _, program := range programs {
			for _, f := range program.Flows {
				for _, m := range value.FindAllStringSubmatch(f.String(), -1) {
					n, _ := strconv.Atoi(m[2] + m[3])
					v, err := strconv.ParseUint(m[1]+m[4], 0, 64)
					if err != nil {
						t.Fatalf("%s: %v", f, err)
					}
					if seen[n] = true; v>>registerInfos[n].bits != 0 {
						t.Errorf("%s: register %d, %s, has %d bits: %s", mode, n, register(n), registerInfos[n].bits, f)
					}
				}
			}
		}
	}
	for _, r := range []register{regOrigin, regSegment, regVRF, regDstNet, regZone, regOutPort, regScratch, regMark, regService} {
		if !seen[int(r)] {
			t.Errorf("no flow has to do with register %d, %s", r, r)
		}
	}
}
