package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/pki"
)

func configCommands() *cli.Command {
	name := arguments{names: "NAME", count: 1, missing: "Name of a context required"}
	return &cli.Command{
		Name: "config", Usage: "clusters that netctl knows (contexts)",
		Commands: []*cli.Command{
			plain("ls", "list contexts; * marks the one in use", noArguments(), nil, listContexts),
			plain("use", "use a context when no other is named", name, nil, useContext),
			plain("set", "make or change a context of what --netmaster, --ca and --insecure say", name, []cli.Flag{
				&cli.StringFlag{Name: "ca-hash", Usage: "get the certificate authority from the cluster, if its key has this `HASH` (netctl ca show)"},
			}, setContext),
			plain("rm", "remove a context and its login", name, nil, removeContext),
		},
	}
}

func listContexts(_ context.Context, cmd *cli.Command) error {
	c, err := readConfig()
	if err != nil {
		return refused(err)
	}
	t := table{headers: []string{"", "Name", "Netmaster", "Authority", "Logged in"}, dashes: []int{0, 4, 9, 9, 9}}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
		at := c.Contexts[name]
		row := []string{"", name, at.Netmaster, at.authority(), "no"}
		if name == c.Current {
			row[0] = "*"
		}
		if at.Token != "" {
			row[4] = "yes"
		}
		rows = append(rows, row)
	}
	return print(cmd, t.format(rows))
}

// authority says in a word whose certificates a context believes.
func (c contextFile) authority() string {
	switch {
	case !strings.HasPrefix(c.Netmaster, "https://"):
		return "none"
	case c.Insecure:
		return "not verified"
	case c.CA != "":
		return "its own"
	}
	return "the system's"
}

// editConfig changes the file.
func editConfig(edit func(*configFile) error) error {
	c, err := readConfig()
	if err != nil {
		return refused(err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]contextFile{}
	}
	if err := edit(&c); err != nil {
		return refused(err)
	}
	if err := c.write(); err != nil {
		return refused(fmt.Errorf("store the contexts: %w", err))
	}
	return nil
}

func noContext(name string) error {
	return fmt.Errorf("there is no context %q: see netctl config ls", name)
}

func useContext(_ context.Context, cmd *cli.Command) error {
	name := cmd.Args().First()
	return editConfig(func(c *configFile) error {
		if _, ok := c.Contexts[name]; !ok {
			return noContext(name)
		}
		c.Current = name
		return nil
	})
}

func removeContext(_ context.Context, cmd *cli.Command) error {
	name := cmd.Args().First()
	return editConfig(func(c *configFile) error {
		if _, ok := c.Contexts[name]; !ok {
			return noContext(name)
		}
		delete(c.Contexts, name)
		if c.Current == name {
			c.Current = ""
		}
		return nil
	})
}

// setContext makes or changes a context. Another server ends the login: its token is not for
// that one. The first context is used from then on.
func setContext(ctx context.Context, cmd *cli.Command) error {
	name := cmd.Args().First()
	return editConfig(func(c *configFile) error {
		at, known := c.Contexts[name]
		if !known && !cmd.IsSet("netmaster") {
			return errors.New("a new context needs the URL of its netmaster: netctl --netmaster https://HOST:9999 config set " + name)
		}
		if cmd.IsSet("netmaster") && at.Netmaster != cmd.String("netmaster") {
			at.Netmaster, at.Token = cmd.String("netmaster"), ""
		}
		if cmd.IsSet("insecure") {
			at.Insecure = cmd.Bool("insecure")
		}
		urls := strings.Split(at.Netmaster, ",")
		if _, err := client.New(client.Config{URLs: urls}); err != nil {
			return err
		}
		var err error
		switch hash := cmd.String("ca-hash"); {
		case hash != "":
			at.CA, err = authorityByHash(ctx, urls, hash)
		case cmd.IsSet("ca"):
			at.CA, err = readAuthority(cmd.String("ca"))
		}
		if err != nil {
			return err
		}
		c.Contexts[name] = at
		if !known && len(c.Contexts) == 1 {
			c.Current = name
		}
		return nil
	})
}

func readAuthority(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the certificate authority: %w", err)
	}
	if _, err := pki.ParseCertificates(text); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(text), nil
}

// authorityByHash asks a cluster for its authority. The connection proves nothing; the hash of
// the authority's key does. Only the certificate with that hash is kept.
func authorityByHash(ctx context.Context, urls []string, hash string) (string, error) {
	if !usesTLS(urls) {
		return "", errors.New("--ca-hash needs a URL that begins with https://")
	}
	c, err := client.New(client.Config{URLs: urls, Insecure: true})
	if err != nil {
		return "", err
	}
	defer c.Close()
	var roots securityapi.Roots
	if err := c.JSON(ctx, http.MethodGet, securityapi.PathRoots, nil, &roots); err != nil {
		return "", fmt.Errorf("get the certificate authority: %w", err)
	}
	certs, err := pki.ParseCertificates([]byte(roots.Roots))
	if err != nil {
		return "", err
	}
	for _, cert := range certs {
		if strings.EqualFold(pki.KeyHash(cert), hash) {
			return string(pki.EncodeCertificates(cert)), nil
		}
	}
	return "", fmt.Errorf("no certificate authority of that cluster has the hash %s: is it the right cluster?", hash)
}
