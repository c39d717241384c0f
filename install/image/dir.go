package image

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// WriteDir writes the tree into an empty directory, or one that is not there yet.
func (t *Tree) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if err := t.entries[name].create(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (e entry) create(path string) error {
	mode := fs.FileMode(e.mode & 0o777)
	if e.mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	switch {
	case e.link != "":
		return os.Symlink(e.link, path)
	case e.source == "" && e.content == nil:
		if err := os.Mkdir(path, mode); err != nil {
			return err
		}
		return os.Chmod(path, mode) // whatever the umask says
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	return errors.Join(e.fill(f), f.Chmod(mode), f.Close())
}

func (e entry) fill(w io.Writer) error {
	if e.content != nil {
		_, err := w.Write(e.content)
		return err
	}
	source, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = io.Copy(w, source)
	return err
}
