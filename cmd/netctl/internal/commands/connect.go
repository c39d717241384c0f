package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
)

// connectionFlags say which netmaster to talk to, and how.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "netmaster", Usage: "`URL` of netmaster, or several separated by commas",
			Value: "http://netmaster:9999", Sources: cli.EnvVars("NETMASTER"),
		},
		&cli.BoolFlag{Name: "insecure", Usage: "do not verify the TLS certificate", Sources: cli.EnvVars("INSECURE")},
	}
}

// connect makes a client as the global options say. It does not connect yet.
func connect(cmd *cli.Command) (*client.Client, error) { return dial(urls(cmd), cmd.Bool("insecure")) }

func dial(urls []string, insecure bool) (*client.Client, error) {
	cfg := client.Config{URLs: urls, Insecure: insecure, Patience: throughChanges}
	if usesTLS(cfg.URLs) {
		token, err := readToken()
		if err != nil {
			return nil, &failure{status: exitRequest, err: err}
		}
		cfg.Token = token
	}
	c, err := client.New(cfg)
	if err != nil {
		return nil, &failure{status: exitUsage, err: fmt.Errorf("Error connecting to netmaster: %w", err)} // fixed text
	}
	return c, nil
}

// throughChanges is how long a command waits for the next leader when one is lost: longer than that
// takes.
const throughChanges = 10 * time.Second

func urls(cmd *cli.Command) []string {
	return strings.Split(cmd.String("netmaster"), ",")
}

// usesTLS reports whether all URLs are such that a token may be sent there.
func usesTLS(urls []string) bool {
	for _, u := range urls {
		if !strings.HasPrefix(u, "https://") {
			return false
		}
	}
	return true
}

// login is the file a login leaves, as the proxy sent it.
type login struct {
	Token string `json:"token"`
}

// loginFile is where the token is kept.
func loginFile() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the login file: %w", err)
	}
	return filepath.Join(home, ".netctl", "config.json"), nil
}

// readToken returns the token of the last login; none is not an error.
func readToken() (string, error) {
	path, err := loginFile()
	if err != nil {
		return "", nil // without a home there is no login
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the login file: %w", err)
	}
	var l login
	if err := json.Unmarshal(text, &l); err != nil {
		return "", fmt.Errorf("login file %s is not valid, log in again: %w", path, err)
	}
	return l.Token, nil
}

// refused gives an error of a request the status netctl exits with.
func refused(err error) error {
	if err == nil {
		return nil
	}
	var f *failure
	if errors.As(err, &f) {
		return err
	}
	return &failure{status: exitRequest, err: err}
}
