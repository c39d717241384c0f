package commands

import (
	"context"
	_ "embed" // the scripts
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

// The scripts ask "netctl __complete SHELL WORD…" what the last of the words, which may
// be empty, could become, and get a line for each possibility.
var (
	//go:embed completion/netctl.bash
	bashScript string
	//go:embed completion/netctl.zsh
	zshScript string
	//go:embed completion/netctl.fish
	fishScript string
)

// completeWithin bounds how long a shell waits for names from the server, unless the
// environment says otherwise.
const (
	completeWithin    = time.Second
	completeWithinEnv = "NETCTL_COMPLETE_WITHIN"
)

func completionCommand() *cli.Command {
	return leaf("completion", "print a shell completion script", arguments{
		names: "bash|zsh|fish", count: 1, missing: "Name of a shell required: bash, zsh or fish",
	}, nil, func(_ context.Context, cmd *cli.Command) error {
		script, ok := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[cmd.Args().First()]
		if !ok {
			return &failure{status: exitUsage, err: fmt.Errorf("unknown shell %q: expected bash, zsh or fish", cmd.Args().First())}
		}
		return print(cmd, script)
	})
}

// completeCommand answers the scripts. It never complains: somebody is typing.
func completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			words := cmd.Args().Slice()
			if len(words) < 2 {
				return nil
			}
			within, err := time.ParseDuration(os.Getenv(completeWithinEnv))
			if err != nil {
				within = completeWithin
			}
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			t := readTyped(cmd.Root(), words[1:])
			var text strings.Builder
			for _, c := range t.candidates(ctx) {
				if words[0] != "bash" {
					c = t.before + c // bash completes what is after the equals sign only
				}
				text.WriteString(c + "\n")
			}
			return print(cmd, text.String())
		},
	}
}

// typed is what has been typed before the cursor.
type typed struct {
	root    *cli.Command
	cmd     *cli.Command      // the innermost command
	parent  string            // the name of the one around it
	args    []string          // its positional arguments
	options map[string]string // options with a value, by their first name
	option  string            // the option whose value is being typed, or ""
	before  string            // of the last word, what is not up to completion: "--tenant="
	word    string            // of the last word, what is to be completed

	insecure bool // the global option
}

// readTyped reads words; the last one is still being typed.
func readTyped(root *cli.Command, words []string) *typed {
	t := &typed{root: root, cmd: root, options: map[string]string{}}
	last := len(words) - 1
	for _, w := range words[:last] {
		name, value, hasValue := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case t.option != "":
			t.options[t.option], t.option = w, ""
		case strings.HasPrefix(w, "-") && w != "-":
			f, takes := t.flag(name)
			t.insecure = t.insecure || f == "insecure"
			if takes && hasValue {
				t.options[f] = value
			} else if takes {
				t.option = f
			}
		case len(t.cmd.Commands) > 0:
			sub := t.cmd.Command(w)
			if sub == nil {
				return &typed{root: root, cmd: &cli.Command{}} // nothing is known of what may follow
			}
			t.parent, t.cmd = t.cmd.Name, sub
		default:
			t.args = append(t.args, w)
		}
	}
	t.word = words[last]
	if name, value, ok := strings.Cut(t.word, "="); ok && t.option == "" && strings.HasPrefix(name, "-") {
		t.option, _ = t.flag(strings.TrimLeft(name, "-"))
		t.before, t.word = name+"=", value
	}
	return t
}

// flag finds an option of the command or of netctl by any of its names, and says what
// its first name is and whether it takes a value.
func (t *typed) flag(name string) (first string, takesValue bool) {
	for _, f := range slices.Concat(t.cmd.Flags, t.root.Flags) {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return f.Names()[0], ok && d.TakesValue() && f.Names()[0] != waitFlag().Names()[0] // which may stand alone
		}
	}
	return "", false
}

// candidates is what the last word may become, sorted.
func (t *typed) candidates(ctx context.Context) []string {
	var all []string
	switch {
	case t.option == "filename":
		all = files(t.word)
	case t.option != "":
		all = t.values(ctx)
	case strings.HasPrefix(t.word, "-"):
		for _, f := range t.cmd.Flags {
			all = append(all, "--"+f.Names()[0])
		}
		all = append(all, "--help")
	case len(t.cmd.Commands) > 0:
		for _, c := range t.cmd.Commands {
			if !c.Hidden && c.Name != "help" {
				all = append(all, c.Name)
			}
		}
	default:
		all = t.names(ctx)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(c string) bool { return c == "" || !strings.HasPrefix(c, t.word) })
}

// words finds the alternatives in what an option says of its value: "`in or out`".
var (
	alternatives = regexp.MustCompile("`([^`]* or [^`]*)`")
	separators   = regexp.MustCompile(`, | or `)
	plainWord    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// values is what the option being typed can be set to: values or names that the
// description of its field knows, else the alternatives in its help text.
func (t *typed) values(ctx context.Context) []string {
	for _, f := range t.cmd.Flags {
		if f.Names()[0] != t.option {
			continue
		}
		if o, ok := f.(described); ok && o.fieldOf().Refers != "" {
			return t.ask(ctx, o.fieldOf().Refers)
		} else if ok && o.fieldOf().Values != nil {
			return slices.Clone(o.fieldOf().Values)
		}
		d, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		if m := alternatives.FindStringSubmatch(d.GetUsage()); m != nil {
			return slices.DeleteFunc(separators.Split(m[1], -1), func(w string) bool { return !plainWord.MatchString(w) })
		}
	}
	return nil
}

// names is what the argument being typed can be, by what the command calls it. What a
// command creates has no name yet.
func (t *typed) names(ctx context.Context) []string {
	wanted := strings.Fields(t.cmd.ArgsUsage)
	i := len(t.args)
	if i >= len(wanted) || i == len(wanted)-1 && (t.cmd.Name == "create" || t.cmd.Name == "rule-add") {
		return nil
	}
	if t.cmd.Name == "completion" {
		return strings.Split(wanted[i], "|")
	}
	return t.ask(ctx, argumentTypes()[t.parent+" "+wanted[i]], t.args...)
}

// argumentTypes says which type of objects an argument names, by the command and what it
// calls its argument.
func argumentTypes() map[string]string {
	return map[string]string{
		"tenant TENANT":                      contivmodel.TenantType,
		"network NETWORK":                    contivmodel.NetworkType,
		"group NETWORK":                      contivmodel.NetworkType,
		"group GROUP":                        contivmodel.EndpointGroupType,
		"policy POLICY":                      contivmodel.PolicyType,
		"policy RULE-ID":                     contivmodel.RuleType,
		"netprofile PROFILE":                 contivmodel.NetprofileType,
		"app-profile PROFILE":                contivmodel.AppProfileType,
		"bgp HOST":                           contivmodel.BgpType,
		"service SERVICE":                    contivmodel.ServiceLBType,
		"external-contracts CONTRACTS-GROUP": contivmodel.ExtContractsGroupType,
	}
}

// ask asks the server for the names of objects of a type: those of the tenant of the
// options, and, if keys of the type have more parts, those under the given names.
// Whatever goes wrong, there are none then.
func (t *typed) ask(ctx context.Context, typ string, under ...string) []string {
	kinds := contivmodel.Kinds()
	i := slices.IndexFunc(kinds, func(k contivmodel.AnyKind) bool { return k.Description().Type == typ })
	if i < 0 {
		return nil
	}
	s := selected(t.root)
	s.insecure = s.insecure || t.insecure
	for name, to := range map[string]*string{"netmaster": &s.netmaster, "context": &s.context, "ca": &s.ca} {
		if typed := t.options[name]; typed != "" {
			*to = typed
		}
	}
	at, err := s.find()
	if err != nil {
		return nil
	}
	c, err := at.dial(throughChanges)
	if err != nil {
		return nil
	}
	defer c.Close()
	objs, err := client.ListAny(ctx, c, kinds[i])
	if err != nil {
		return nil
	}
	path := kinds[i].Description().Names
	if path[0] == "tenantName" && len(path) > 1 {
		tenant := t.options["tenant"]
		if tenant == "" {
			tenant = contivmodel.DefaultTenant
		}
		under = append([]string{tenant}, under...)
	}
	var names []string
	for _, obj := range objs {
		if name, ok := nameUnder(kinds[i].Members(obj), path, under); ok {
			names = append(names, name)
		}
	}
	return names
}

// nameUnder returns the last part of an object's key if the parts before are the given
// ones.
func nameUnder(members []contivmodel.Member, path, under []string) (string, bool) {
	value := func(field string) string {
		i := slices.IndexFunc(members, func(m contivmodel.Member) bool { return m.Name == field })
		return members[i].Value().(string)
	}
	last := len(path) - 1
	for i, field := range path[:last] {
		if i >= len(under) || value(field) != under[i] {
			return "", false
		}
	}
	return value(path[last]), true
}

// files are the files and directories that a path may become.
func files(path string) []string {
	found, err := filepath.Glob(path + "*")
	if err != nil {
		return nil // what is typed looks like a pattern and is none
	}
	for i, f := range found {
		if info, err := os.Stat(f); err == nil && info.IsDir() {
			found[i] += "/"
		}
	}
	return found
}
