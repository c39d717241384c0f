package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

// maxFile bounds a file, in bytes.
const maxFile = 64 << 20

// Item is an object of a file.
type Item struct {
	Kind string // type string
	Key  string
	// Where is the place it is from: "web.yaml: document 2, line 14".
	Where string

	kind kind
	obj  any
}

// String is the kind and key of an item.
func (i Item) String() string { return i.Kind + " " + i.Key }

// Read reads and checks everything in files: a path is a file, a directory, of which
// all .yaml, .yml and .json files are read, or "-", which is stdin. The items are in
// the order of making. Errors of kind Invalid name file, document, object and field;
// others are those of reading.
func Read(paths []string, stdin io.Reader) ([]Item, error) {
	var items []Item
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			found, err := Parse(file, text)
			if err != nil {
				return nil, err
			}
			items = append(items, found...)
		}
	}
	first := map[string]Item{}
	for _, item := range items {
		if other, twice := first[item.String()]; twice {
			return nil, errs.New(errs.Invalid, "%s: %s was given before, in %s", item.Where, item, other.Where)
		}
		first[item.String()] = item
	}
	order := map[string]int{}
	for i, k := range kinds() {
		order[k.typ] = i
	}
	slices.SortStableFunc(items, func(a, b Item) int { return order[a.Kind] - order[b.Kind] })
	return items, nil
}

// expand lists the files a path stands for.
func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errs.New(errs.Invalid, "%s: the directory has no .yaml, .yml or .json file", path)
	}
	return files, nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	if len(text) > maxFile {
		return nil, errs.New(errs.Invalid, "%s: larger than %d bytes", path, maxFile)
	}
	return text, nil
}

// Parse reads the documents of one file, called name. Errors are of kind Invalid.
func Parse(name string, text []byte) ([]Item, error) {
	if name == "-" {
		name = "stdin"
	}
	var items []Item
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for n := 1; ; n++ {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		where := fmt.Sprintf("%s: document %d", name, n)
		if err != nil {
			return nil, errs.New(errs.Invalid, "%s: %s", where, strings.Join(strings.Fields(err.Error()), " "))
		}
		found, err := parseDocument(where, doc.Content[0])
		if err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
}

// parseDocument reads an object, a list of objects, or nothing.
func parseDocument(where string, node *yaml.Node) ([]Item, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return nil, nil
	case node.Kind != yaml.SequenceNode:
		item, err := parseObject(fmt.Sprintf("%s, line %d", where, node.Line), node)
		return []Item{item}, err
	}
	items := make([]Item, len(node.Content))
	for i, part := range node.Content {
		var err error
		if items[i], err = parseObject(fmt.Sprintf("%s, object %d, line %d", where, i+1, part.Line), part); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// parseObject reads and checks an object.
func parseObject(where string, node *yaml.Node) (Item, error) {
	item := Item{Where: where}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return item, errs.New(errs.Invalid, "%s: expected an object with its kind", where)
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == "kind" {
			item.Kind = node.Content[i+1].Value
		}
	}
	if item.Kind == "" {
		return item, errs.New(errs.Invalid, "%s: kind is missing", where)
	}
	var err error
	if item.kind, err = kindOf(item.Kind); err != nil {
		return item, errs.New(errs.Invalid, "%s: %w", where, err)
	}
	item.obj = item.kind.New()
	err = fill(item.kind.Members(item.obj), node)
	if err == nil {
		err = item.check()
	}
	if err != nil {
		what := item.Kind
		if item.Key != "" {
			what = item.String()
		}
		return item, errs.New(errs.Invalid, "%s: %s: %w", where, what, err)
	}
	return item, nil
}

// check names and validates an item.
func (i *Item) check() error {
	for _, f := range i.kind.Members(i.obj) {
		if f.Empty() && f.Naming {
			return errs.New(errs.Invalid, "%s is missing", f.Name)
		}
	}
	var err error
	i.Key, err = i.kind.Prepare(i.obj)
	return err
}

// fill sets members as a node says.
func fill(members []contivmodel.Member, node *yaml.Node) error {
	fields, names := map[string]contivmodel.Member{}, []string{"kind"}
	for _, f := range members {
		fields[f.Name] = f
		names = append(names, f.Name)
	}
	seen := map[string]bool{}
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		f, known := fields[name]
		switch {
		case seen[name]:
			return errs.New(errs.Invalid, "%s is given twice", name)
		case name == "kind", isServerMember(name):
		case !known:
			return errs.New(errs.Invalid, "unknown field %s: expected %s", name, strings.Join(names, ", "))
		default:
			if err := set(f, value); err != nil {
				return err
			}
		}
		seen[name] = true
	}
	return nil
}

// set sets a member to what a node says, whatever YAML takes its type for.
func set(f contivmodel.Member, node *yaml.Node) error {
	wrong := func(what string) error { return errs.New(errs.Invalid, "%s: expected %s", f.Name, what) }
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		f.Set(nil)
	case f.Type == contivmodel.ListField:
		if node.Kind != yaml.SequenceNode {
			return wrong("a list of texts")
		}
		texts := make([]string, len(node.Content))
		for i, n := range node.Content {
			if n.Kind != yaml.ScalarNode {
				return wrong("a list of texts")
			}
			texts[i] = n.Value
		}
		f.Set(texts)
	case node.Kind != yaml.ScalarNode && f.Type == contivmodel.NumberField:
		return wrong("a number")
	case f.Type == contivmodel.SwitchField:
		if node.Kind != yaml.ScalarNode || node.Value != "true" && node.Value != "false" {
			return wrong("true or false")
		}
		f.Set(node.Value == "true")
	case node.Kind != yaml.ScalarNode:
		return wrong("a text")
	case f.Type == contivmodel.NumberField:
		n, err := strconv.Atoi(node.Value)
		if err != nil {
			return errs.New(errs.Invalid, "%s: expected a number, got %q", f.Name, node.Value)
		}
		f.Set(n)
	default:
		f.Set(node.Value)
	}
	return nil
}
