package cni

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Note records that a plugin was told to detach a container while the agent could not do
// it. Runtimes do not wait for agents: the plugin reports success and leaves a note, and
// the agent detaches the container when it is back. Notes are lost when the host restarts,
// as are the containers' namespaces.
type Note struct{ ContainerID, IfName string }

// separator separates the parts of a note's name. The specification does not allow it in
// container ids.
const separator = "@"

// NotesDir is the directory of notes for the agent at a socket.
func NotesDir(socket string) string { return filepath.Join(filepath.Dir(socket), "deletions") }

func (n Note) file(dir string) (string, error) {
	name := n.ContainerID + separator + n.IfName
	if n.ContainerID == "" || n.IfName == "" || strings.ContainsRune(name, filepath.Separator) || strings.Contains(n.ContainerID, separator) {
		return "", fmt.Errorf("container id %q and interface %q cannot be noted", n.ContainerID, n.IfName)
	}
	return filepath.Join(dir, name), nil
}

// Leave writes a note to dir, which is created if needed. An existing note stays.
func (n Note) Leave(dir string) error {
	path, err := n.file(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// Drop removes a note, and reports whether there was one.
func (n Note) Drop(dir string) (bool, error) {
	path, err := n.file(dir)
	if err != nil {
		return false, nil // such a note cannot have been left
	}
	switch err := os.Remove(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

// Notes lists the notes in dir; a missing directory has none.
func Notes(dir string) ([]Note, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Note
	for _, f := range files {
		if id, ifName, ok := strings.Cut(f.Name(), separator); ok {
			all = append(all, Note{id, ifName})
		}
	}
	return all, nil
}
