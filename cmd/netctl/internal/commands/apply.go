package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/cmd/netctl/internal/manifest"
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

func applyCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "`FILE` or directory of YAML or JSON, - for stdin; may be repeated"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "show what would change, change nothing"},
		previewFlag(),
	}
	return leaf("apply", "create or update the objects in files", noArguments(), flags, apply)
}

func exportCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "only the tenant `NAME` and its objects"},
		&cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "write JSON instead of YAML"},
	}
	return leaf("export", "write all objects in the format of apply", noArguments(), flags, export)
}

// apply makes what files describe. Nothing is changed unless all of them can be read
// and nothing in them is known to be impossible.
func apply(ctx context.Context, cmd *cli.Command) error {
	paths := cmd.StringSlice("filename")
	if len(paths) == 0 {
		return misuse("filename is required")
	}
	items, err := manifest.Read(paths, cmd.Root().Reader)
	switch {
	case errs.Is(err, errs.Invalid):
		return &failure{status: exitUsage, err: err}
	case err != nil:
		return &failure{status: exitLocal, err: err}
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	steps, err := manifest.Plan(ctx, c, items)
	if err != nil {
		return refused(err)
	}
	if cmd.Bool("preview") {
		return previewSteps(ctx, cmd, c, steps)
	}
	if cmd.Bool("dry-run") {
		return print(cmd, preview(steps))
	}
	var last client.Change // of all
	for i, s := range steps {
		ch, err := s.Apply(ctx, c)
		if err != nil {
			return refused(fmt.Errorf("%w; %d of %d objects were done before", err, i, len(steps)))
		}
		last = client.Change{Revision: max(last.Revision, ch.Revision), Settings: max(last.Settings, ch.Settings)}
		if err := print(cmd, fmt.Sprintf("%s: %s\n", s, s.Action)); err != nil {
			return err
		}
	}
	return awaitHosts(ctx, cmd, c, last)
}

// previewSteps says what the steps that change something would do to connections.
func previewSteps(ctx context.Context, cmd *cli.Command, c *client.Client, steps []manifest.Step) error {
	var req flowapi.PreviewRequest
	for _, s := range steps {
		if s.Action == manifest.Unchanged {
			continue
		}
		change, err := s.Put()
		if err != nil {
			return &failure{status: exitLocal, err: err}
		}
		req.Changes = append(req.Changes, change)
	}
	if len(req.Changes) == 0 {
		return print(cmd, "nothing would change\n")
	}
	return previewChanges(ctx, cmd, c, req)
}

// preview is what steps would do, with the fields that would change.
func preview(steps []manifest.Step) string {
	var text strings.Builder
	for _, s := range steps {
		if s.Action == manifest.Unchanged {
			fmt.Fprintf(&text, "%s: unchanged\n", s)
			continue
		}
		fmt.Fprintf(&text, "%s: would be %s\n", s, s.Action)
		for _, c := range s.Changes {
			if c.From != "" {
				fmt.Fprintf(&text, "  - %s: %s\n", c.Field, c.From)
			}
			fmt.Fprintf(&text, "  + %s: %s\n", c.Field, c.To)
		}
	}
	return text.String()
}

// export writes what there is.
func export(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	tenant := cmd.String("tenant")
	if cmd.IsSet("tenant") {
		if tenant == "" {
			return misuse("tenant is empty")
		}
		if _, err := client.Get(ctx, c, contivmodel.TenantKind(), tenant); err != nil {
			return refused(err)
		}
	}
	items, err := manifest.Collect(ctx, c, tenant)
	if err != nil {
		return refused(err)
	}
	write := manifest.YAML
	if cmd.Bool("json") {
		write = manifest.JSON
	}
	text, err := write(items)
	if err != nil {
		return &failure{status: exitLocal, err: err}
	}
	return print(cmd, string(text))
}
