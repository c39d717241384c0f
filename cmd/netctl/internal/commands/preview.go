package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"go.yaml.in/yaml/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/flowapi"
)

// maxPolicyFile limits a file of NetworkPolicies, in bytes.
const maxPolicyFile = 1 << 20

func previewFlag() cli.Flag {
	return &cli.BoolFlag{Name: "preview", Usage: "change nothing; say which connections of the last hour the change would have denied or allowed"}
}

func k8sCommands() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "filename", Aliases: []string{"f"}, Usage: "`FILE` with NetworkPolicies in YAML or JSON, - for stdin"},
		sinceFlag(),
		jsonFlag(),
	}
	return &cli.Command{Name: "k8s", Usage: "what is particular to Kubernetes", Commands: []*cli.Command{
		leaf("preview", "say which connections of the last hour NetworkPolicies would have denied or allowed", noArguments(), flags, previewPolicies),
	}}
}

func sinceFlag() cli.Flag {
	return &cli.StringFlag{Name: "since", Usage: "only connections after a `TIME` (RFC 3339), or of the last DURATION", Value: "1h"}
}

// previewPut previews storing an object.
func previewPut[T, O any](ctx context.Context, cmd *cli.Command, kind contivmodel.Kind[T, O], obj *T) error {
	change, err := putOf(kind, obj)
	if err != nil {
		return err
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	return previewChanges(ctx, cmd, c, flowapi.PreviewRequest{Changes: []flowapi.Change{change}})
}

// putOf is the change of storing an object.
func putOf(kind contivmodel.AnyKind, obj any) (flowapi.Change, error) {
	key, err := kind.Prepare(obj)
	if err != nil {
		return flowapi.Change{}, &failure{status: exitUsage, err: err}
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return flowapi.Change{}, &failure{status: exitLocal, err: fmt.Errorf("write as JSON: %w", err)}
	}
	return flowapi.Change{Verb: "put", Kind: kind.Description().Collection, Key: key, Object: text}, nil
}

// previewChanges asks for a preview and shows it.
func previewChanges(ctx context.Context, cmd *cli.Command, c *client.Client, req flowapi.PreviewRequest) error {
	since := time.Hour
	if text := cmd.String("since"); text != "" {
		now := time.Now()
		at, err := sinceTime(text, now)
		if err != nil {
			return err
		}
		req.Since, since = at.UTC(), now.Sub(at)
	}
	p, err := c.Preview(ctx, req)
	if err != nil {
		return refused(err)
	}
	return show(cmd, p, outcomeText(p, since))
}

// outcomeText shows a preview to people.
func outcomeText(p *flowapi.Preview, since time.Duration) string {
	var b strings.Builder
	connections := fmt.Sprintf("%s connections of the last %s", thousands(p.Examined), periodText(since))
	list := func(verb string, n int, flows []flowapi.PreviewedFlow) {
		if n == 0 {
			fmt.Fprintf(&b, "%s none of %s\n", verb, connections)
			return
		}
		fmt.Fprintf(&b, "%s %s of %s:\n", verb, thousands(n), connections)
		for _, f := range flows {
			from := f.Record.Src
			from.Port = 0
			fmt.Fprintf(&b, "  %s  %s  %s -> %s  by %s\n", stampText(f.Record.Start), printable(f.Record.Proto), endpointText(from, ""), endpointText(f.Record.Dst, f.Record.Proto), ruleText(f.By))
		}
		if more := n - len(flows); more > 0 {
			fmt.Fprintf(&b, "  and %s more\n", thousands(more))
		}
	}
	list("this would have denied", p.WouldDeny, p.Denied)
	if p.WouldAllow > 0 {
		list("would now allow", p.WouldAllow, p.Allowed)
	}
	for _, m := range p.Missing {
		b.WriteString(missingText(m) + "\n")
	}
	for _, g := range p.Gaps {
		b.WriteString(gapText(g) + "\n")
	}
	return b.String()
}

func periodText(d time.Duration) string {
	if d.Round(time.Second) == time.Hour {
		return "hour"
	}
	return d.Round(time.Second).String()
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func previewPolicies(ctx context.Context, cmd *cli.Command) error {
	path := cmd.String("filename")
	if path == "" {
		return misuse("filename is required")
	}
	in := cmd.Root().Reader
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return &failure{status: exitLocal, err: fmt.Errorf("read NetworkPolicies: %w", err)}
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	policies, err := readPolicies(in)
	if err != nil {
		return &failure{status: exitUsage, err: fmt.Errorf("%s: %w", path, err)}
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	return previewChanges(ctx, cmd, c, flowapi.PreviewRequest{NetworkPolicies: policies})
}

// readPolicies reads documents of YAML, each a NetworkPolicy.
func readPolicies(in io.Reader) ([]json.RawMessage, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxPolicyFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPolicyFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxPolicyFile)
	}
	var all []json.RawMessage
	for docs := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		switch err := docs.Decode(&doc); {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, errors.New("expected a NetworkPolicy, found nothing")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		if len(doc) == 0 {
			continue
		}
		if doc["kind"] != "NetworkPolicy" || doc["apiVersion"] != "networking.k8s.io/v1" {
			return nil, fmt.Errorf("expected objects of kind NetworkPolicy of networking.k8s.io/v1, found %v of %v", doc["kind"], doc["apiVersion"])
		}
		policy, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		all = append(all, policy)
	}
}
