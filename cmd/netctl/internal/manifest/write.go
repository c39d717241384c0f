package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/contiv/netplugin/contivmodel/client"
)

// Collect returns everything a netmaster has, or what belongs to one tenant, in the
// order of making.
func Collect(ctx context.Context, c *client.Client, tenant string) ([]Item, error) {
	var items []Item
	for _, k := range kinds() {
		objs, err := client.ListAny(ctx, c, k)
		if err != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", k.typ, err)
		}
		for _, obj := range objs {
			if tenant == "" || k.Tenant(obj) == tenant {
				items = append(items, Item{Kind: k.typ, kind: k, obj: obj})
			}
		}
	}
	return items, nil
}

// YAML writes items, a document each.
func YAML(items []Item) ([]byte, error) {
	if len(items) == 0 {
		return nil, nil // the encoder cannot write nothing
	}
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	for _, item := range items {
		doc := &yaml.Node{Kind: yaml.MappingNode}
		err := member(doc, "kind", item.Kind)
		for _, f := range item.kind.Members(item.obj) {
			if err == nil && !f.Empty() {
				err = member(doc, f.Name, f.Value())
			}
		}
		if err == nil {
			err = enc.Encode(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s as YAML: %w", item.Kind, err)
		}
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return text.Bytes(), nil
}

// member adds a member to a mapping.
func member(doc *yaml.Node, name string, value any) error {
	var key yaml.Node
	key.SetString(name)
	v, err := encode(value)
	doc.Content = append(doc.Content, &key, v)
	return err
}

// encode makes a node of a value. A string of several lines is quoted: as a block, the
// library cannot read what it writes if the first line begins with a space.
func encode(value any) (*yaml.Node, error) {
	node := new(yaml.Node)
	switch value := value.(type) {
	case []string:
		node.Kind = yaml.SequenceNode
		for _, s := range value {
			element, err := encode(s)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, element)
		}
		return node, nil
	case string:
		if node.SetString(value); node.Style == yaml.LiteralStyle {
			node.Style = yaml.DoubleQuotedStyle
			return node, nil
		}
	}
	return node, node.Encode(value)
}

// JSON writes items as an array.
func JSON(items []Item) ([]byte, error) {
	objs := make([]map[string]any, len(items))
	for i, item := range items {
		objs[i] = map[string]any{"kind": item.Kind}
		for _, f := range item.kind.Members(item.obj) {
			if !f.Empty() {
				objs[i][f.Name] = f.Value()
			}
		}
	}
	text, err := json.MarshalIndent(objs, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return append(text, '\n'), nil
}
