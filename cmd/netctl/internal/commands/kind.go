package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

// Options many commands have.

func tenantFlag() cli.Flag {
	return fieldFlags(contivmodel.NetworkKind(), []option{tenantOption()})[0]
}

func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list all tenants"}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "list as JSON"}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "list names only"}
}

// inTenant is the key of something named in the tenant of the options.
func inTenant(cmd *cli.Command, name string) string { return cmd.String("tenant") + ":" + name }

// create stores an object and says so.
func create[T, O any](ctx context.Context, cmd *cli.Command, kind contivmodel.Kind[T, O], obj *T, said string) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	return put(ctx, cmd, c, kind, obj, said)
}

// put stores an object, says so, if there is anything to say, and waits for the hosts if
// it is to.
func put[T, O any](ctx context.Context, cmd *cli.Command, c *client.Client, kind contivmodel.Kind[T, O], obj *T, said string) error {
	_, ch, err := client.PutChange(ctx, c, kind, obj)
	if err != nil {
		return refused(err)
	}
	return changed(ctx, cmd, c, ch, said)
}

// changed says what has been done, and waits for the hosts if it is to.
func changed(ctx context.Context, cmd *cli.Command, c *client.Client, ch client.Change, said string) error {
	if said != "" {
		if err := print(cmd, said+"\n"); err != nil {
			return err
		}
	}
	return awaitHosts(ctx, cmd, c, ch)
}

// remove deletes an object and says so, if there is anything to say.
func remove[T, O any](ctx context.Context, cmd *cli.Command, kind contivmodel.Kind[T, O], key, said string) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	ch, err := client.DeleteChange(ctx, c, kind, key)
	if err != nil {
		return refused(err)
	}
	return changed(ctx, cmd, c, ch, said)
}

// info prints every object of a kind of settings as text, or with --json as a list.
func info[T, O any](kind contivmodel.Kind[T, O], text func(*T) string) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		all, err := client.List(ctx, c, kind)
		if err != nil {
			return refused(err)
		}
		if cmd.Bool("json") {
			return printJSON(cmd, all)
		}
		var b strings.Builder
		for i := range all {
			b.WriteString(text(&all[i]))
		}
		return print(cmd, b.String())
	}
}

// inspect prints an object with what is in use by it.
func inspect[T, O any](ctx context.Context, cmd *cli.Command, kind contivmodel.Kind[T, O], key string) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	v, err := client.Inspect(ctx, c, kind, key)
	if err != nil {
		return refused(err)
	}
	return printJSON(cmd, v)
}

// listing says how the objects of a kind are listed.
type listing[T, O any] struct {
	kind   contivmodel.Kind[T, O]
	tenant func(*T) string // of an object; nil for kinds outside tenants
	name   func(*T) string // for quiet output
	table  table
	row    func(*T) []string
	order  func(a, b *T) int // of tables and names; nil: by key
	text   func([]*T) string // instead of one table
}

// list prints the objects of one tenant, or of all; sorted by tenant, then name, which
// is the order of their keys.
func (l listing[T, O]) list(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	if l.tenant != nil {
		if _, err := client.Get(ctx, c, contivmodel.TenantKind(), cmd.String("tenant")); err != nil {
			return refused(err)
		}
	}
	return l.only(ctx, cmd, c, func(obj *T) bool {
		return l.tenant == nil || cmd.Bool("all") || l.tenant(obj) == cmd.String("tenant")
	})
}

// only prints the objects that keep wants.
func (l listing[T, O]) only(ctx context.Context, cmd *cli.Command, c *client.Client, keep func(*T) bool) error {
	if cmd.Bool("watch") {
		return l.follow(ctx, cmd, c, keep)
	}
	all, err := client.List(ctx, c, l.kind)
	if err != nil {
		return refused(err)
	}
	objs := make([]*T, 0, len(all))
	for i := range all {
		if keep(&all[i]) {
			objs = append(objs, &all[i])
		}
	}
	return l.print(cmd, objs)
}

// print prints objects in the form that the options want.
func (l listing[T, O]) print(cmd *cli.Command, objs []*T) error {
	if cmd.Bool("json") {
		return printJSON(cmd, objs)
	}
	if l.order != nil {
		slices.SortStableFunc(objs, l.order)
	}
	switch {
	case cmd.Bool("quiet"):
		var names strings.Builder
		for _, obj := range objs {
			names.WriteString(l.name(obj) + "\n")
		}
		return print(cmd, names.String())
	case l.text != nil:
		return print(cmd, l.text(objs))
	}
	rows := make([][]string, len(objs))
	for i, obj := range objs {
		rows[i] = l.row(obj)
	}
	return print(cmd, l.table.format(rows))
}
