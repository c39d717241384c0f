package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

//go:embed suites.yaml
var suitesFile []byte

// suites is what is run, and what of it is not.
type suites struct {
	Suites     []suite  `yaml:"suites"`
	Impossible []reason `yaml:"impossible"`
	// Unsupported are specs that fail, because Contiv does not do what they ask.
	Unsupported []reason `yaml:"unsupported"`
}

// suite is a chapter of the report.
type suite struct {
	Name  string  `yaml:"name"`
	Specs pattern `yaml:"specs"`
}

// reason says why specs are not tried.
type reason struct {
	Specs  pattern `yaml:"specs"`
	Reason string  `yaml:"reason"`
}

// pattern is a regular expression in YAML.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML reads a pattern.
func (p *pattern) UnmarshalYAML(n *yaml.Node) error {
	var text string
	if err := n.Decode(&text); err != nil {
		return err
	}
	var err error
	if p.Regexp, err = regexp.Compile(text); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

// parseSuites reads a file like suites.yaml.
func parseSuites(text []byte) (suites, error) {
	var s suites
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("suites: %w", err)
	}
	for _, suite := range s.Suites {
		if suite.Name == "" || suite.Specs.Regexp == nil {
			return s, fmt.Errorf("suites: suite %q: expected a name and specs", suite.Name)
		}
	}
	for _, r := range append(s.Impossible, s.Unsupported...) {
		if r.Reason == "" || r.Specs.Regexp == nil {
			return s, fmt.Errorf("suites: reason %q: expected a reason and specs", r.Reason)
		}
	}
	return s, nil
}

// of finds the suite of a spec, or none.
func (s suites) of(spec string) (name string, ok bool) {
	for _, suite := range s.Suites {
		if suite.Specs.MatchString(spec) {
			return suite.Name, true
		}
	}
	return "", false
}

// whyNot says why a spec is not tried, and what it counts as; "" if it is.
func (s suites) whyNot(spec string) (outcome, string) {
	for _, r := range s.Impossible {
		if r.Specs.MatchString(spec) {
			return notRun, r.Reason
		}
	}
	for _, r := range s.Unsupported {
		if r.Specs.MatchString(spec) {
			return unsupported, r.Reason
		}
	}
	return passed, ""
}
