package ui

import (
	"encoding/json"
	"fmt"
)

// Package is an npm package that the page contains, with the text of its licence.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"`
}

// Packages lists the packages that the page contains, sorted by name; make ui writes the list.
// Browsers get it, too, as the licences ask for: /ui/licenses.json.
func Packages() ([]Package, error) {
	text, err := files.ReadFile("dist/licenses.json")
	if err != nil {
		return nil, fmt.Errorf("read the licences of the page: %w", err)
	}
	var all []Package
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the licences of the page: %w", err)
	}
	return all, nil
}
