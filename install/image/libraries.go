package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// libraryDirs are where the dynamic linker of Debian and of its relatives looks.
func libraryDirs() []string {
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
}

// libraries returns the paths of what the dynamic linker loads with a program, itself
// included, in order; none for a static one.
func libraries(program string) ([]string, error) {
	found := map[string]bool{}
	todo := []string{program}
	for len(todo) > 0 {
		file := todo[0]
		todo = todo[1:]
		needed, err := needs(file)
		if err != nil {
			return nil, fmt.Errorf("libraries of %s: %w", program, err)
		}
		for _, path := range needed {
			if !found[path] {
				found[path] = true
				todo = append(todo, path)
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// needs returns the paths of the libraries that a file itself names, and of its linker.
func needs(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var paths []string
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		linker := make([]byte, p.Filesz)
		if _, err := p.ReadAt(linker, 0); err != nil {
			return nil, fmt.Errorf("%s: read the linker's name: %w", file, err)
		}
		paths = append(paths, strings.TrimRight(string(linker), "\x00"))
	}
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	dirs, err := f.DynString(elf.DT_RUNPATH)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	dirs = append(slices.DeleteFunc(dirs, func(d string) bool { return strings.Contains(d, "$") }), libraryDirs()...)
	for _, name := range names {
		path, err := findLibrary(name, dirs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func findLibrary(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", errs.New(errs.NotFound, "library %s not found in any of %s", name, strings.Join(dirs, ", "))
}
