package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// checkCode returns the imports and calls that the rules forbid, as file:line: text.
func checkCode(root string) ([]string, error) {
	var findings []string
	err := eachGoFile(root, func(name, rel string) error {
		found, err := checkFile(name, rel)
		findings = append(findings, found...)
		return err
	})
	return findings, err
}

// source is one file under examination.
type source struct {
	fset     *token.FileSet
	file     *ast.File
	rel      string            // path in the module
	imports  map[string]string // name in the file → import path
	findings []string
}

func checkFile(name, rel string) ([]string, error) {
	s := &source{fset: token.NewFileSet(), rel: rel, imports: map[string]string{}}
	var err error
	if s.file, err = parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	top, _, _ := strings.Cut(rel, "/")
	if slices.Contains(everywhere, top) {
		return nil, nil
	}
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		s.imports[name] = imported
		s.checkImport(spec.Pos(), top, imported)
	}
	s.checkCalls(top)
	s.checkOnce()
	return s.findings, nil
}

func (s *source) add(at token.Pos, format string, args ...any) {
	s.findings = append(s.findings, fmt.Sprintf("%s:%d: %s", s.rel, s.fset.Position(at).Line, fmt.Sprintf(format, args...)))
}

func (s *source) checkImport(at token.Pos, top, imported string) {
	if rest, ours := strings.CutPrefix(imported, module+"/"); ours {
		to, _, _ := strings.Cut(rest, "/")
		allowed, known := mayImport[top]
		switch {
		case !known:
			s.add(at, "folder %s has no rule about imports: add one to scripts/housecheck/rules.go", top)
		case to != top && !slices.Contains(allowed, to):
			s.add(at, "%s must not import %s", top, rest)
		}
		return
	}
	outside := strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
	if outside && slices.Contains(standardOnly, top) {
		s.add(at, "%s uses the standard library only, not %s", top, imported)
	}
	for prefix, places := range onlyIn {
		if !strings.HasPrefix(imported, prefix) {
			continue
		}
		here := func(place string) bool { return strings.HasPrefix(s.rel, place+"/") }
		if !slices.ContainsFunc(places, here) {
			s.add(at, "%s may be imported in %s only", imported, strings.Join(places, ", "))
		}
	}
}

// checkCalls looks for what ends the process or sleeps. Files that import testing
// serve tests, where Fatal is a method of the test.
func (s *source) checkCalls(top string) {
	_, serveTests := s.imports["testing"]
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			if f.Name == "panic" && top != "cmd" {
				s.add(call.Pos(), "return an error instead of panic")
			}
		case *ast.SelectorExpr:
			pkg := ""
			if x, ok := f.X.(*ast.Ident); ok {
				pkg = s.imports[x.Name]
			}
			switch {
			case pkg == "time" && f.Sel.Name == "Sleep" && !serveTests:
				s.add(call.Pos(), "wait for an event with a context instead of time.Sleep")
			case top == "cmd" || serveTests:
			case slices.Contains(forbiddenCalls[pkg], f.Sel.Name), pkg == "" && slices.Contains(forbiddenMethods, f.Sel.Name):
				s.add(call.Pos(), "return an error instead of calling %s", f.Sel.Name)
			}
		}
		return true
	})
}
