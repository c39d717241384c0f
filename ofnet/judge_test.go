package ofnet_test

import (
	"testing"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/judge"
)

// A real switch decides as package judge says, over random rules and packets of both families,
// in every mode.
func TestJudgeAgreesWithSwitch(t *testing.T) {
	ofnet.Compare(t, ofnet.Evaluator{
		Allows: func(s ofnet.PolicyRuleSet, c ofnet.Connection) bool { return judge.Set(s, judge.Connection(c)) >= 0 },
		Judged: func(rules []ofnet.Rule, c ofnet.Connection) int {
			v, _ := judge.Rules(rules, judge.Connection(c))
			return int(v)
		},
	})
}
