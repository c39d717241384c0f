package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// word is one that messages and documents do not use, as operators do not search for it.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// avoided are the words of earlier versions of this tree and what has taken their place;
// docs/glossary.md says what each of those means.
var avoided = []word{
	{regexp.MustCompile(`(?i)\b(a|an|the|its|of|by|no|with|for|and) guards?\b`), "endpoint policy"},
	{regexp.MustCompile(`(?i)\ballow[- ]?sets?\b`), "policy rule set"},
	{regexp.MustCompile(`(?i)\bseats?\b`), "frontend (of a service), leader state (of a daemon)"},
	{regexp.MustCompile(`(?i)\bstrangers?\b`), "foreign host, source range rule"},
	{regexp.MustCompile(`(?i)\bfurnish(es|ed|ing)?\b`), "configure"},
	{regexp.MustCompile(`(?i)\bbelongings?\b`), "link config"},
	{regexp.MustCompile(`(?i)\bunheard\b`), "undelivered"},
	{regexp.MustCompile(`(?i)\bpictures?\b`), "state, debug state, drawing"},
	{regexp.MustCompile(`(?i)\bleft-?overs?\b`), "orphans"},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being|while|stays?|long|once) away\b`), "unavailable, unreachable, down"},
	{regexp.MustCompile(`(?i)\bwishes\b`), "desired set"},
	{regexp.MustCompile(`(?i)\b(lets?|letting) go\b`), "release"},
	{regexp.MustCompile(`(?i)\babsences?\b`), "host down, missing"},
	{regexp.MustCompile(`(?i)\btenures?\b`), "leadership, term"},
	{regexp.MustCompile(`(?i)\bnaive\b`), "reference model"},
	{regexp.MustCompile(`(?i)neighbour`), "neighbor, as RFC 4861 has it"},
	{regexp.MustCompile(`(?i)\b(is|are|keeps?|kept|stays?) apart\b`), "isolated, separate"},
	{regexp.MustCompile(`(?i)\bheld to\b`), "subject to"},
	{regexp.MustCompile(`(?i)\bheed(s|ed|ing)?\b`), "ignored, honored"},
	{regexp.MustCompile(`(?i)\bleads? (nodes?|connections?|clients?|containers?|them|it|traffic|packets?) to\b|\bled to (its|their|the) (provider|backend)`), "load-balance, forward, translate"},
	{regexp.MustCompile(`(?i)\bas (it|they) should\b`), "say what is wrong"},
	{regexp.MustCompile(`(?i)\bcomes? forward\b|\bcame forward\b`), "register"},
	{regexp.MustCompile(`(?i)\bmends?\b|\bmended\b`), "fix, repair"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\btrying again\b`), "retrying"},
}

// checkWords reads the messages (string constants of several words outside tests) of the
// Go files below root, and the documents, and returns the avoided words they use.
func checkWords(root string) ([]string, error) {
	var findings []string
	add := func(rel string, line int, text string) {
		for _, w := range avoided {
			if found := w.pattern.FindString(text); found != "" {
				findings = append(findings, fmt.Sprintf("%s:%d: %q: say %s", rel, line, found, w.instead))
			}
		}
	}
	err := eachGoFile(root, func(name, rel string) error {
		if strings.HasPrefix(rel, "scripts/housecheck/") { // which names them
			return nil
		}
		texts, err := parseTexts(name)
		if err != nil {
			return err
		}
		found := func(line int, text string) { add(rel, line, text) }
		texts.eachMessage(found)
		texts.eachComment(found)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachDocument(root, func(rel string, lines []string) {
		for i, line := range lines {
			if rel != "docs/glossary.md" { // which says what earlier words were
				add(rel, i+1, line)
			}
		}
	})
	return findings, err
}

// texts are the constants and comments of a Go file.
type texts struct {
	fset *token.FileSet
	file *ast.File
}

func parseTexts(name string) (t texts, err error) {
	t.fset = token.NewFileSet()
	t.file, err = parser.ParseFile(t.fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
	return t, err
}

// eachComment calls f for every comment.
func (t texts) eachComment(f func(line int, text string)) {
	for _, group := range t.file.Comments {
		for _, c := range group.List {
			f(t.fset.Position(c.Pos()).Line, c.Text)
		}
	}
}

// eachMessage calls f for the string constants of several words.
func (t texts) eachMessage(f func(line int, text string)) {
	ast.Inspect(t.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
				f(t.fset.Position(lit.Pos()).Line, text)
			}
		}
		return true
	})
}
