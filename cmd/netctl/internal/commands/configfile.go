package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	ownerOnly  = 0o600
	ownerEnter = 0o700
)

// configFile is what netctl keeps: the token of the last login outside of contexts, where
// the original has it, and the clusters that the user has named.
type configFile struct {
	Token    string                 `json:"token,omitempty"`
	Current  string                 `json:"current,omitempty"`
	Contexts map[string]contextFile `json:"contexts,omitempty"`
}

// contextFile is one cluster.
type contextFile struct {
	Netmaster string `json:"netmaster"`    // as the option
	CA        string `json:"ca,omitempty"` // PEM
	Insecure  bool   `json:"insecure,omitempty"`
	Token     string `json:"token,omitempty"` // of the last login
}

// configPath is where the file is.
func configPath() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the login file: %w", err)
	}
	return filepath.Join(home, ".netctl", "config.json"), nil
}

// readConfig reads the file; none is not an error.
func readConfig() (configFile, error) {
	path, err := configPath()
	if err != nil {
		return configFile{}, nil // without a home there is no login
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return configFile{}, nil
	}
	if err != nil {
		return configFile{}, fmt.Errorf("read the login file: %w", err)
	}
	var c configFile
	if err := json.Unmarshal(text, &c); err != nil {
		return configFile{}, fmt.Errorf("login file %s is not valid, log in again: %w", path, err)
	}
	return c, nil
}

// write replaces the file at once, readable for its owner only; with nothing in it, it goes.
func (c configFile) write() error {
	path, err := configPath()
	if err != nil {
		return err
	}
	if c.Token == "" && c.Current == "" && len(c.Contexts) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), ownerEnter); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(ownerOnly), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// keepToken stores the token of a login, or "" to forget it, where the target's belongs. A
// file that cannot be read is replaced.
func keepToken(t target, token string) error {
	c, err := readConfig()
	if err != nil {
		c = configFile{}
	}
	if t.name == "" {
		c.Token = token
	} else if at, ok := c.Contexts[t.name]; ok {
		at.Token = token
		c.Contexts[t.name] = at
	}
	return c.write()
}
