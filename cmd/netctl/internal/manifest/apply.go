package manifest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Action is what an item asks for.
type Action string

// The actions.
const (
	Create    Action = "created"
	Update    Action = "updated"
	Unchanged Action = "unchanged"
)

// Step is what is to be done for an item.
type Step struct {
	Item
	Action  Action
	Changes []Change // of an update, or what is not empty in what is created
}

// Change is a field that is to be another.
type Change struct{ Field, From, To string }

// Plan compares items with what there is. It refuses, with an error of kind Invalid,
// what cannot become what the item says.
func Plan(ctx context.Context, c *client.Client, items []Item) ([]Step, error) {
	present := map[string]map[string]any{}
	steps := make([]Step, len(items))
	for i, item := range items {
		if present[item.Kind] == nil {
			objs, err := client.ListAny(ctx, c, item.kind)
			if err != nil {
				return nil, fmt.Errorf("list objects of kind %s: %w", item.Kind, err)
			}
			present[item.Kind] = make(map[string]any, len(objs))
			for _, obj := range objs {
				key, _ := item.kind.Prepare(obj) // what is stored has been validated
				present[item.Kind][key] = obj
			}
		}
		steps[i] = Step{Item: item, Action: Create}
		have, exists := present[item.Kind][item.Key]
		if err := steps[i].compare(have, exists); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// compare finds what is to change.
func (s *Step) compare(have any, exists bool) error {
	if !exists {
		have = s.kind.New()
	} else {
		s.Action = Unchanged
	}
	were := s.kind.Members(have)
	for i, is := range s.kind.Members(s.obj) {
		was := were[i]
		if exists && is.Empty() && is.Keep {
			is.Set(was.Value())
		}
		switch {
		case !exists && is.Empty(), exists && is.Equal(was):
			continue
		case exists && is.Immutable:
			return errs.New(errs.Invalid, "%s: %s: %s cannot change from %s to %s; delete the object and create it again", s.Where, s.Item, is.Name, was, is)
		case exists:
			s.Action = Update
		}
		change := Change{Field: is.Name, To: is.String()}
		if exists {
			change.From = was.String()
		}
		s.Changes = append(s.Changes, change)
	}
	return nil
}

// Apply does what a step says, and returns what hosts have to apply.
func (s *Step) Apply(ctx context.Context, c *client.Client) (client.Change, error) {
	if s.Action == Unchanged {
		return client.Change{}, nil
	}
	ch, err := client.PutAny(ctx, c, s.kind, s.Key, s.obj)
	if err != nil {
		return ch, fmt.Errorf("%s: %s: %w", s.Where, s.Item, err)
	}
	return ch, nil
}

// Put is the step as a change to preview.
func (s *Step) Put() (flowapi.Change, error) {
	text, err := json.Marshal(s.obj)
	if err != nil {
		return flowapi.Change{}, fmt.Errorf("%s: write as JSON: %w", s, err)
	}
	return flowapi.Change{Verb: "put", Kind: s.kind.Description().Collection, Key: s.Key, Object: text}, nil
}
