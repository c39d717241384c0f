package image

import (
	"debug/buildinfo"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/contiv/netplugin/utils/errs"
)

// Module is a Go module that is part of a binary, or the standard library.
type Module struct {
	Path, Version string
	Dir           string // its source on this machine
}

// standardLibrary is the path that stands for what comes with the compiler.
const standardLibrary = "std"

// Binaries are the names of this project's programs in the image.
func Binaries() []string { return slices.Clone(binaries) }

// Modules returns the modules of some Go programs by path, without this project's own, and
// where go build has found them.
func Modules(programs ...string) ([]Module, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for the directory of its modules: %w", err)
	}
	cache, root, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	found := map[string]Module{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("modules of %s: %w", program, err)
		}
		found[standardLibrary] = Module{standardLibrary, info.GoVersion, root}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			dir, err := moduleDir(cache, module.Version{Path: dep.Path, Version: dep.Version})
			if err != nil {
				return nil, fmt.Errorf("modules of %s: %w", program, err)
			}
			found[dep.Path+"@"+dep.Version] = Module{dep.Path, dep.Version, dir}
		}
	}
	if v := found[standardLibrary].Version; v != "" && v != runtime.Version() {
		return nil, errs.New(errs.Invalid, "the programs were built with %s, and this is %s: run make build", v, runtime.Version())
	}
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path+" "+a.Version, b.Path+" "+b.Version) })
	return all, nil
}

func moduleDir(cache string, v module.Version) (string, error) {
	path, err := module.EscapePath(v.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(v.Version)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, path+"@"+version), nil
}
