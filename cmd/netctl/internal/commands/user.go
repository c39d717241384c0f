package commands

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/identity"
)

// userRecord is a local user, as the login API has it.
type userRecord struct {
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Disable   bool   `json:"disable"`
}

const usersPath = "local_users/"

func userCommands() *cli.Command {
	name := arguments{names: "USER", count: 1, missing: "User name required"}
	names := []cli.Flag{
		&cli.StringFlag{Name: "first-name", Usage: "first `NAME`"},
		&cli.StringFlag{Name: "last-name", Usage: "last `NAME`"},
	}
	password := []cli.Flag{
		&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from stdin, without prompts"},
		&cli.BoolFlag{Name: "random", Usage: "make a random password, and print it"},
	}
	return &cli.Command{
		Name: "user", Usage: "local users of the cluster",
		Commands: []*cli.Command{
			plain("ls", "list users", noArguments(), []cli.Flag{jsonFlag()}, listUsers),
			plain("create", "create a user", name, append(append([]cli.Flag{}, names...), password...), createUser),
			plain("update", "change a user; to disable one ends its logins", name, append(append([]cli.Flag{}, names...),
				&cli.BoolFlag{Name: "disable", Usage: "do not let the user in"}, &cli.BoolFlag{Name: "enable", Usage: "let the user in again"}), updateUser),
			plain("passwd", "set a user's password, which ends the user's logins", name, password, setPassword),
			plain("rm", "delete a user with its roles and service tokens", name, nil, func(ctx context.Context, cmd *cli.Command) error {
				return callAuth(ctx, cmd, http.MethodDelete, usersPath+url.PathEscape(cmd.Args().First())+"/", nil, nil)
			}),
		},
	}
}

// callAuth sends a request to the login API.
func callAuth(ctx context.Context, cmd *cli.Command, method, path string, in, out any) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	return refused(c.Auth(ctx, method, path, in, out))
}

// listAuth prints a list of the login API, as a table or as JSON.
func listAuth[T any](ctx context.Context, cmd *cli.Command, path string, t table, row func(T) []string) error {
	var all []T
	if err := callAuth(ctx, cmd, http.MethodGet, path, nil, &all); err != nil {
		return err
	}
	if cmd.Bool("json") {
		return printJSON(cmd, all)
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return print(cmd, t.format(rows))
}

func listUsers(ctx context.Context, cmd *cli.Command) error {
	t := table{headers: []string{"Name", "First name", "Last name", "State"}, dashes: []int{4, 10, 9, 5}}
	return listAuth(ctx, cmd, usersPath, t, func(u userRecord) []string {
		state := "enabled"
		if u.Disable {
			state = "disabled"
		}
		return []string{u.Username, u.FirstName, u.LastName, state}
	})
}

func createUser(ctx context.Context, cmd *cli.Command) error {
	password, err := newPassword(cmd)
	if err != nil {
		return err
	}
	in := map[string]any{"username": cmd.Args().First(), "password": password, "first_name": cmd.String("first-name"), "last_name": cmd.String("last-name")}
	if err := callAuth(ctx, cmd, http.MethodPost, usersPath, in, nil); err != nil {
		return err
	}
	return showPassword(cmd, password)
}

func updateUser(ctx context.Context, cmd *cli.Command) error {
	in := map[string]any{}
	for option, field := range map[string]string{"first-name": "first_name", "last-name": "last_name"} {
		if cmd.IsSet(option) {
			in[field] = cmd.String(option)
		}
	}
	if cmd.Bool("disable") || cmd.Bool("enable") {
		in["disable"] = cmd.Bool("disable")
	}
	if len(in) == 0 || cmd.Bool("disable") && cmd.Bool("enable") {
		return misuse("say what to change: --first-name, --last-name, and one of --disable and --enable")
	}
	return callAuth(ctx, cmd, http.MethodPatch, usersPath+url.PathEscape(cmd.Args().First())+"/", in, nil)
}

func setPassword(ctx context.Context, cmd *cli.Command) error {
	password, err := newPassword(cmd)
	if err != nil {
		return err
	}
	in := map[string]any{"password": password}
	if err := callAuth(ctx, cmd, http.MethodPatch, usersPath+url.PathEscape(cmd.Args().First())+"/", in, nil); err != nil {
		return err
	}
	return showPassword(cmd, password)
}

// newPassword makes a password, or asks for one: twice, if nobody can see what is typed.
func newPassword(cmd *cli.Command) (string, error) {
	if cmd.Bool("random") {
		return strings.ToLower(rand.Text()[:24]), nil // 120 bits
	}
	in := bufio.NewReader(cmd.Root().Reader)
	password, err := readPassword(cmd, in, "Password: ")
	if err != nil || cmd.Bool("password-stdin") {
		return password, err
	}
	again, err := askSecret(cmd, in, "Again: ")
	if err != nil {
		return "", err
	}
	if again != password {
		return "", refused(errors.New("the two passwords differ"))
	}
	return password, nil
}

// showPassword prints a password that nobody knows yet.
func showPassword(cmd *cli.Command, password string) error {
	if !cmd.Bool("random") {
		return nil
	}
	return print(cmd, fmt.Sprintf("Password of %s: %s\n", cmd.Args().First(), password))
}

func whoAmICommand() *cli.Command {
	return plain("whoami", "show who the server takes you for, and your roles", noArguments(), []cli.Flag{jsonFlag()},
		func(ctx context.Context, cmd *cli.Command) error {
			var id identity.Identity
			if err := callAuth(ctx, cmd, http.MethodGet, "whoami/", nil, &id); err != nil {
				return err
			}
			if cmd.Bool("json") {
				return printJSON(cmd, id)
			}
			return print(cmd, whoAmIText(id))
		})
}

func whoAmIText(id identity.Identity) string {
	var roles []string
	for _, g := range id.Grants {
		roles = append(roles, roleText(string(g.Role), g.Tenant))
	}
	switch {
	case len(roles) == 0 && id.IsAdmin():
		roles = []string{string(identity.Admin)}
	case len(roles) == 0:
		roles = []string{"none"}
	}
	return fmt.Sprintf("%s (%s)\nroles: %s\n", id, id.How, strings.Join(roles, ", "))
}

func roleText(role, tenant string) string {
	if tenant == "" {
		return role
	}
	return role + " of " + tenant
}
