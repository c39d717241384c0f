package commands

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

var update = flag.Bool("update", false, "write the pages anew") // a flag

const root = "../../../.."

// TestPages holds what pages show of netctl to what netctl prints. In indented blocks,
// lines that begin with "$ " are typed, all blocks of a page one after the other against
// one netmaster; what follows is what it answers. "$ cat FILE" shows a file of the reader's.
func TestPages(t *testing.T) {
	for _, page := range []string{"README.md", "docs/netctl.md"} {
		t.Run(page, func(t *testing.T) {
			path, text := readPage(t, page)
			t.Chdir(t.TempDir())
			url := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
			t.Setenv("NETMASTER", url)
			t.Setenv("HOME", t.TempDir())
			typed := 0
			got := sessions.ReplaceAllStringFunc(text, func(block string) string {
				var out strings.Builder
				for _, step := range splitSession(block) {
					typed++
					out.WriteString(indent("$ " + step.line + "\n" + answer(t, step)))
				}
				return out.String()
			})
			if typed < 5 {
				t.Errorf("the page shows %d commands", typed)
			}
			comparePage(t, path, text, got)
		})
	}
}

// TestReference holds the end of docs/netctl.md to the commands there are.
func TestReference(t *testing.T) {
	const page, head = "docs/netctl.md", "## All commands\n"
	path, text := readPage(t, page)
	before, _, ok := strings.Cut(text, head)
	if !ok {
		t.Fatalf("%s has no %q", page, head)
	}
	comparePage(t, path, text, before+head+reference(tree(nil, io.Discard, io.Discard), "netctl"))
}

// readPage reads a page of the repository; path is good wherever the test goes.
func readPage(t *testing.T, page string) (path, text string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(content)
}

// comparePage compares a page with what it should be, or writes it.
func comparePage(t *testing.T, page, is, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("%s is not true any more; run this test with -update (-netctl +page):\n%s", page, diff)
	}
}

// sessions are indented blocks that begin with a command.
var sessions = regexp.MustCompile(`(?m)^    \$ .*\n(?:    .*\n|\n    )*`)

// step is a command and what the page shows after it.
type step struct{ line, shown string }

func splitSession(block string) []step {
	var steps []step
	for line := range strings.Lines(block) {
		line = strings.TrimPrefix(line, "    ")
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{line: strings.TrimSuffix(typed, "\n")})
			continue
		}
		steps[len(steps)-1].shown += line
	}
	return steps
}

// answer is what a command prints, without blanks at the ends of lines.
func answer(t *testing.T, s step) string {
	t.Helper()
	args := strings.Fields(s.line)
	if args[0] == "cat" {
		if err := os.WriteFile(args[1], []byte(s.shown), 0o644); err != nil {
			t.Fatal(err)
		}
		return s.shown
	}
	if args[0] != "netctl" {
		t.Fatalf("%q: only netctl and cat can be shown", s.line)
	}
	var out bytes.Buffer
	Run(t.Context(), args, strings.NewReader(""), &out, &out)
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(out.String(), "")
}

func indent(text string) string {
	return regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(text, "    $1")
}

// reference describes the commands below cmd.
func reference(cmd *cli.Command, name string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\nOptions of netctl, before the command:\n\n%s", options(cmd))
	for _, group := range cmd.Commands {
		if group.Hidden || group.Name == "help" {
			continue
		}
		if len(group.Commands) == 0 {
			text.WriteString(describe(group, "### "+name))
			continue
		}
		fmt.Fprintf(&text, "\n### %s %s\n\n%s.%s\n", name, group.Name, upperFirst(group.Usage), aliases(group))
		for _, leaf := range group.Commands {
			if !leaf.Hidden && leaf.Name != "help" {
				text.WriteString(describe(leaf, "#### "+name+" "+group.Name))
			}
		}
	}
	return text.String()
}

func describe(cmd *cli.Command, head string) string {
	text := "\n" + strings.TrimSpace(head+" "+cmd.Name+" "+cmd.ArgsUsage) + "\n\n" + upperFirst(cmd.Usage) + "." + aliases(cmd) + "\n"
	if table := options(cmd); table != "" {
		text += "\n" + table
	}
	return text
}

func aliases(cmd *cli.Command) string {
	if len(cmd.Aliases) == 0 {
		return ""
	}
	return " Also `" + strings.Join(cmd.Aliases, "`, `") + "`."
}

// options is a table of a command's options.
func options(cmd *cli.Command) string {
	var rows strings.Builder
	for _, f := range cmd.Flags {
		d, ok := f.(cli.DocGenerationFlag)
		if !ok || slices.Contains(f.Names(), "help") {
			continue
		}
		var names []string
		for _, n := range f.Names() {
			names = append(names, "`"+strings.TrimSpace(cli.FlagNamePrefixer([]string{n}, ""))+"`")
		}
		what := strings.ReplaceAll(d.GetUsage(), "|", `\|`)
		preset := ""
		switch f := f.(type) {
		case *cli.StringFlag:
			preset = f.Value
		case *cli.IntFlag:
			preset = strings.TrimPrefix(strconv.Itoa(f.Value), "0")
		case *textOption:
			preset = f.Value
		case *numberOption:
			preset = strings.TrimPrefix(strconv.Itoa(f.Value), "0")
		}
		if preset != "" {
			preset = "`" + preset + "`"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", strings.Join(names, ", "), what, preset)
	}
	if rows.Len() == 0 {
		return ""
	}
	return "| option | meaning | default |\n|---|---|---|\n" + rows.String()
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
