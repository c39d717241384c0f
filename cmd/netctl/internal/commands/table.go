package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"
)

// table is the head of a listing. The dashes below a header are as many as they have
// always been, whatever the header's width.
type table struct {
	headers []string
	dashes  []int
	padded  bool // pad the last column, too
}

// format lays out rows: columns left-aligned, as wide as their widest cell and two
// blanks.
func (t table) format(rows [][]string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	end := "\n"
	if t.padded {
		end = "\t\n"
	}
	rule := make([]string, len(t.dashes))
	for i, n := range t.dashes {
		rule[i] = strings.Repeat("-", n)
	}
	for _, row := range append([][]string{t.headers, rule}, rows...) {
		_, _ = fmt.Fprint(w, strings.Join(row, "\t"), end) // a strings.Builder takes everything
	}
	_ = w.Flush()
	return text.String()
}

// show prints what was asked for: v as JSON with --json, else the text.
func show(cmd *cli.Command, v any, text string) error {
	if cmd.Bool("json") {
		return printJSON(cmd, v)
	}
	return print(cmd, text)
}

// printJSON prints v with two blanks of indentation.
func printJSON(cmd *cli.Command, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("write as JSON: %w", err)}
	}
	return print(cmd, string(text)+"\n")
}
