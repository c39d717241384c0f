package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// What is in a lab's directory:
//
//	lab.json                 the configuration; written first, and what marks a directory as a lab
//	hosts/<host>/init.log    log of the host's init
//	hosts/<host>/fs/…        the host's own /var/log, /etc/openvswitch, /var/lib/contiv …
//	containers/<name>.json   an attached container, or one that is being attached
const labFile = "lab.json"

func (l *Lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.cfg.Dir}, elem...)...)
}

// claimDir writes the configuration into an empty or new directory. Of two processes that
// claim the same directory, one succeeds.
func claimDir(c Config) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == labFile {
			return errs.New(errs.Exists, "a lab is in %s already: take it down first (contiv-lab --dir %s down)", c.Dir, c.Dir)
		}
	}
	if len(entries) > 0 {
		return errs.New(errs.Invalid, "directory %s is not empty and not a lab: choose another one", c.Dir)
	}
	if inits, err := findInits(c.Dir); err != nil || len(inits) > 0 {
		return errors.Join(err, errs.New(errs.Exists, "processes of an earlier lab in %s are left: take it down first (contiv-lab --dir %s down)", c.Dir, c.Dir))
	}
	return writeNew(filepath.Join(c.Dir, labFile), c)
}

func readConfig(dir string) (Config, error) {
	c := Config{}
	b, err := os.ReadFile(filepath.Join(dir, labFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, errs.New(errs.NotFound, "no lab in %s: bring one up first (contiv-lab --dir %s up)", dir, dir)
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("read %s: %w", filepath.Join(dir, labFile), err)
	}
	c.Dir = dir
	return c, nil
}

// writeNew writes v as JSON to a file that must not exist. The content appears atomically
// or not at all.
func writeNew(path string, v any) error {
	temp, err := writeTemp(path, v)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errs.New(errs.Exists, "%s exists already", path)
		}
		return err
	}
	return nil
}

// replace writes v as JSON over a file.
func replace(path string, v any) error {
	temp, err := writeTemp(path, v)
	if err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func writeTemp(path string, v any) (string, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (l *Lab) containerFile(name string) string { return l.path("containers", name+".json") }

// Containers lists the attached containers by name, including those whose attachment
// was interrupted.
func (l *Lab) Containers() ([]Container, error) {
	files, err := filepath.Glob(l.path("containers", "*.json"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []Container
	for _, f := range files {
		c, err := l.Container(strings.TrimSuffix(filepath.Base(f), ".json"))
		if errs.Is(err, errs.NotFound) {
			continue // detached meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Container returns an attached container.
func (l *Lab) Container(name string) (Container, error) {
	var c Container
	b, err := os.ReadFile(l.containerFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return c, errs.New(errs.NotFound, "container %s is not attached", name)
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("read %s: %w", l.containerFile(name), err)
	}
	return c, nil
}
