package image

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is a root file system in the making. Below /bin, /lib, /lib64 and /sbin its files
// are in /usr, as in current distributions. Everything belongs to root and has no date, so
// that equal content makes equal archives. The zero value is an empty one.
type Tree struct {
	entries map[string]entry // by path, without the slash in front
}

// entry is a directory, unless it has one of these.
type entry struct {
	source  string // file to be copied
	content []byte // of a file, if not nil
	link    string // target of a symbolic link
	mode    int64
}

// merged are the directories that are links into /usr.
var merged = []string{"bin", "lib", "lib64", "sbin"}

// put adds an entry, and the directories above it.
func (t *Tree) put(name string, e entry) {
	if t.entries == nil {
		t.entries = map[string]entry{}
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if top, _, below := strings.Cut(name, "/"); below && slices.Contains(merged, top) {
		t.entries[top] = entry{link: "usr/" + top, mode: 0o777}
		name = "usr/" + name
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := t.entries[dir]; !ok {
			t.entries[dir] = entry{mode: 0o755}
		}
	}
	t.entries[name] = e
}

// Dir adds a directory, with permissions such as 0o755.
func (t *Tree) Dir(name string, mode int64) { t.put(name, entry{mode: mode}) }

// Text adds a file with some content.
func (t *Tree) Text(name, content string, mode int64) {
	t.put(name, entry{content: []byte(content), mode: mode})
}

// Link adds a symbolic link.
func (t *Tree) Link(name, target string) { t.put(name, entry{link: target, mode: 0o777}) }

// File adds a copy of a file of this machine.
func (t *Tree) File(name, source string, mode int64) error {
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	t.put(name, entry{source: real, mode: mode})
	return nil
}

// Program adds a program of this machine and the libraries it needs, at the same paths.
func (t *Tree) Program(name string) error {
	libraries, err := libraries(name)
	if err != nil {
		return err
	}
	for _, file := range append(libraries, name) {
		if err := t.File(file, file, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// WriteTar writes the tree as a tar archive, directories before what is in them.
func (t *Tree) WriteTar(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if err := t.entries[name].write(archive, name); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
	}
	return archive.Close()
}

func (e entry) write(w *tar.Writer, name string) error {
	switch {
	case e.source != "":
		return e.copy(w, name)
	case e.content != nil:
		return addFile(w, name, e.mode, e.content)
	case e.link != "":
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: e.link, Mode: e.mode})
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: e.mode})
}

func (e entry) copy(w *tar.Writer, name string) error {
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

func addFile(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
