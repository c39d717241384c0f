package commands

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// authorization is a role of a principal, as the login API has it.
type authorization struct {
	AuthzUUID     string
	PrincipalName string
	Local         bool
	Role          string
	TenantName    string
}

func roleCommands() *cli.Command {
	return &cli.Command{
		Name: "role", Usage: "roles of users, groups and ServiceAccounts",
		Commands: []*cli.Command{
			plain("ls", "list who has which role", noArguments(), []cli.Flag{jsonFlag()}, listRoles),
			plain("add", "give a role: admin, ops (of a tenant) or viewer (of a tenant, or of all)",
				arguments{names: "PRINCIPAL ROLE", count: 2, missing: "Principal and role required: a local user, the DN of an LDAP group, oidc:GROUP, or system:serviceaccount:NAMESPACE:NAME"},
				[]cli.Flag{&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "name of the tenant"}}, addRole),
			plain("rm", "take a role away", arguments{names: "ID", count: 1, missing: "ID of role ls required"}, nil, func(ctx context.Context, cmd *cli.Command) error {
				return callAuth(ctx, cmd, http.MethodDelete, "authorizations/"+url.PathEscape(cmd.Args().First())+"/", nil, nil)
			}),
		},
	}
}

func listRoles(ctx context.Context, cmd *cli.Command) error {
	t := table{headers: []string{"Principal", "Role", "Tenant", "ID"}, dashes: []int{9, 4, 6, 2}}
	return listAuth(ctx, cmd, "authorizations/", t, func(a authorization) []string {
		return []string{a.PrincipalName, a.Role, a.TenantName, a.AuthzUUID}
	})
}

// addRole gives a role. Names of local users have neither of the signs that tell the others.
func addRole(ctx context.Context, cmd *cli.Command) error {
	principal := cmd.Args().First()
	in := map[string]any{
		"principalName": principal, "local": !strings.ContainsAny(principal, "=:"), "role": cmd.Args().Get(1), "tenantName": cmd.String("tenant"),
	}
	var made authorization
	if err := callAuth(ctx, cmd, http.MethodPost, "authorizations/", in, &made); err != nil {
		return err
	}
	return print(cmd, made.PrincipalName+" has the role "+roleText(made.Role, made.TenantName)+"\n")
}

// serviceToken is a token for scripts, as the login API has it.
type serviceToken struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Role       string    `json:"role"`
	TenantName string    `json:"tenantName,omitempty"`
	Creator    string    `json:"creator"`
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires"`
	Token      string    `json:"token,omitempty"`
}

const tokensPath = "tokens/"

func tokenCommands() *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "service tokens: logins of scripts, with an end",
		Commands: []*cli.Command{
			plain("create", "make a service token, and print it, once", arguments{names: "NAME", count: 1, missing: "Name required"}, []cli.Flag{
				&cli.StringFlag{Name: "role", Usage: "`ROLE`: admin, ops or viewer", Value: "viewer"},
				&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "name of the tenant"},
				&cli.DurationFlag{Name: "ttl", Usage: "how long it is good, `DURATION`", Value: 30 * 24 * time.Hour},
			}, createToken),
			plain("ls", "list service tokens", noArguments(), []cli.Flag{jsonFlag()}, listTokens),
			plain("rm", "remove a service token, which ends it", arguments{names: "ID", count: 1, missing: "ID of token ls required"}, nil, func(ctx context.Context, cmd *cli.Command) error {
				return callAuth(ctx, cmd, http.MethodDelete, tokensPath+url.PathEscape(cmd.Args().First())+"/", nil, nil)
			}),
		},
	}
}

func createToken(ctx context.Context, cmd *cli.Command) error {
	in := map[string]any{"name": cmd.Args().First(), "role": cmd.String("role"), "tenantName": cmd.String("tenant"), "ttl": cmd.Duration("ttl").String()}
	var made serviceToken
	if err := callAuth(ctx, cmd, http.MethodPost, tokensPath, in, &made); err != nil {
		return err
	}
	return print(cmd, made.Token+"\n")
}

func listTokens(ctx context.Context, cmd *cli.Command) error {
	t := table{headers: []string{"ID", "Name", "Role", "Tenant", "Made by", "Expires"}, dashes: []int{2, 4, 4, 6, 7, 7}}
	return listAuth(ctx, cmd, tokensPath, t, func(s serviceToken) []string {
		return []string{s.ID, s.Name, s.Role, s.TenantName, s.Creator, s.Expires.UTC().Format(time.RFC3339)}
	})
}
