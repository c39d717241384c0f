package nodesetup

import (
	"errors"
	"os"
	"path/filepath"
)

// Remove removes what Run has written, and tells of each file. What is not there is no
// error; nothing is removed in a dry run.
func Remove(confDir, binDir string, dryRun bool, say func(path string)) error {
	var files []string
	if confDir != "" { // first: who reads it needs the plugin
		files = append(files, filepath.Join(confDir, Conflist))
	}
	if binDir != "" {
		files = append(files, filepath.Join(binDir, Plugin))
	}
	for _, path := range files {
		_, err := os.Lstat(path)
		if err == nil && !dryRun {
			err = os.Remove(path)
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		default:
			say(path)
		}
	}
	return nil
}
