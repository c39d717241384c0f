package image

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Package is a Debian package that files of the image come from.
type Package struct {
	Name, Version, Architecture string
	Source, SourceVersion       string // the package of its source code
}

// Copyright is the file with the package's licences, on this machine and in the image.
func (p Package) Copyright() string { return "/usr/share/doc/" + p.Name + "/copyright" }

// Packages returns the packages that the tree's files come from, by name.
func (t *Tree) Packages() ([]Package, error) {
	owners := map[string]bool{}
	for _, f := range files { // some are made at installation, and nobody owns them
		owners[f.from] = true
	}
	var paths []string
	for name, e := range t.entries {
		if e.source != "" && !strings.HasPrefix(name, "contiv/") && !t.generated(name) {
			paths = append(paths, e.source)
		}
	}
	owned, err := ownersOf(paths)
	if err != nil {
		return nil, err
	}
	for _, name := range owned {
		owners[name] = true
	}
	var all []Package
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		p, err := describe(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// generated reports whether a file is one of those whose package is named.
func (t *Tree) generated(name string) bool {
	return slices.ContainsFunc(files, func(f struct{ path, from string }) bool { return f.path == "/"+name })
}

// ownersOf returns the packages that have installed some files.
func ownersOf(paths []string) (names []string, err error) {
	args := []string{"-S"}
	for _, path := range paths {
		args = append(args, path, merge(path))
	}
	// It ends with 1 when one of the two names of a file is not known.
	out, err := exec.Command("dpkg-query", args...).Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("ask for the packages of files: %w", err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(out)) {
		owner, path, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "diversion by ") {
			continue
		}
		owner, _, _ = strings.Cut(owner, ",")
		known[path], _, _ = strings.Cut(owner, ":")
	}
	for _, path := range paths {
		name := known[path]
		if name == "" {
			name = known[merge(path)]
		}
		if name == "" {
			return nil, errs.New(errs.NotFound, "file %s is of no Debian package: its licence is not known, so it cannot be in the image", path)
		}
		names = append(names, name)
	}
	return names, nil
}

// merge is the other name of a file in a directory that is a link into /usr.
func merge(path string) string {
	if short, ok := strings.CutPrefix(path, "/usr/"); ok {
		if top, _, _ := strings.Cut(short, "/"); slices.Contains(merged, top) {
			return "/" + short
		}
		return path
	}
	return filepath.Join("/usr", path)
}

func describe(name string) (Package, error) {
	const format = "${Version}\n${Architecture}\n${source:Package}\n${source:Version}\n"
	out, err := exec.Command("dpkg-query", "-W", "-f", format, name).Output()
	fields := strings.Split(string(out), "\n")
	if err != nil || len(fields) < 4 {
		return Package{}, fmt.Errorf("ask for the version of package %s: %q: %w", name, out, err)
	}
	return Package{name, fields[0], fields[1], fields[2], fields[3]}, nil
}
