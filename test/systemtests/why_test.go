package systemtests

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/eventually"
)

// TestWhyFollowed types what docs/why.md says, and compares what it shows with what is
// answered.
func TestWhyFollowed(t *testing.T) {
	page, p := readDocument(t, "docs/why.md"), newTypist(t)
	shown := 0
	for _, s := range sessionSteps(string(page)) {
		if s.plain {
			if out, err := p.run(s.line); err != nil {
				t.Fatalf("%s: %v\n%s", s.line, err, out)
			}
			continue
		}
		shown++
		check := func() error {
			out, err := p.run(s.line)
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			if diff := cmp.Diff(timeless(s.shown), timeless(out)); diff != "" {
				return errors.New("the page (-) and what is printed (+) differ:\n" + diff)
			}
			return nil
		}
		if asking.MatchString(s.line) {
			eventually.Succeeds(t, s.line, check)
		} else if err := check(); err != nil {
			t.Fatalf("%s: %v", s.line, err)
		}
	}
	if shown < 10 {
		t.Errorf("the page shows %d answers, expected it to have more", shown)
	}
}

// asking finds commands that change nothing. What they say of connections is complete after
// two seconds.
var asking = regexp.MustCompile(`^netctl (explain|flows|trace|doctor|policy (hits|rule-ls))\b|--preview$`)

// stamp is a time, which is another one each time.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// took is how long an allowed connection took.
var took = regexp.MustCompile(`TIME  \S+ +allowed`)

// timeless is an answer without times and blanks at the ends of lines.
func timeless(text string) string {
	text = stamp.ReplaceAllString(text, "TIME")
	text = took.ReplaceAllString(text, "TIME  TOOK  allowed")
	return strings.TrimSpace(regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, ""))
}

// sessionStep is a command and what a document shows below it.
type sessionStep struct {
	line, shown string
	plain       bool // nothing is shown: the command stands without "$ "
}

// sessionSteps are the commands of the indented blocks of a document. Blocks that begin with
// "$ " show answers.
func sessionSteps(page string) (steps []sessionStep) {
	answers := false // inside such a block
	for line := range strings.Lines(page) {
		text, indented := strings.CutPrefix(line, "    ")
		typed, prompted := strings.CutPrefix(text, "$ ")
		switch {
		case indented && prompted:
			steps, answers = append(steps, sessionStep{line: strings.TrimSpace(typed)}), true
		case indented && answers, answers && line == "\n":
			steps[len(steps)-1].shown += text
		case indented:
			typed, _, _ = strings.Cut(text, " #")
			steps = append(steps, sessionStep{line: strings.TrimSpace(typed), plain: true})
		default:
			answers = false
		}
	}
	return steps
}
