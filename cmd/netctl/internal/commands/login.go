package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/contiv/netplugin/contivmodel/client"
)

const (
	loginPath  = "/api/v1/auth_proxy/login/"
	maxLogin   = 64 << 10 // bytes of an answer to a login
	ownerOnly  = 0o600
	ownerEnter = 0o700
)

func loginCommand() *cli.Command {
	return leaf("login", "log in to an authenticating proxy", noArguments(), nil, logIn)
}

func logoutCommand() *cli.Command {
	return leaf("logout", "forget the last login", noArguments(), nil, func(context.Context, *cli.Command) error {
		path, err := loginFile()
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return refused(fmt.Errorf("log out: %w", err))
		}
		return nil
	})
}

// logIn asks for name and password and keeps the token the proxy gives for them.
func logIn(ctx context.Context, cmd *cli.Command) error {
	if !usesTLS(urls(cmd)) {
		return &failure{status: exitRequest, err: errors.New("login needs a URL that begins with https://"), help: true}
	}
	c, err := client.New(client.Config{URLs: urls(cmd), Insecure: cmd.Bool("insecure")})
	if err != nil {
		return &failure{status: exitUsage, err: fmt.Errorf("Error connecting to netmaster: %w", err)} // fixed text
	}
	in := bufio.NewReader(cmd.Root().Reader)
	name, err := ask(cmd, in, "Username: ")
	if err != nil {
		return err
	}
	if name = strings.TrimSpace(name); name == "" {
		return refused(errors.New("a user name is required"))
	}
	password, err := askSecret(cmd, in, "Password: ")
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodPost, loginPath, map[string]string{"username": name, "password": password})
	if err != nil {
		return refused(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
	if err != nil {
		return refused(fmt.Errorf("read the answer: %w", err))
	}
	return keepLogin(cmd, resp.StatusCode, body)
}

// keepLogin says how a login went and stores the token.
func keepLogin(cmd *cli.Command, status int, body []byte) error {
	switch status {
	case http.StatusOK:
	case http.StatusUnauthorized:
		if err := print(cmd, "Login failed: Bad username or password.\n"); err != nil {
			return err
		}
		return refused(errors.New("bad username or password"))
	default:
		if err := print(cmd, fmt.Sprintf("Login failed: unexpected response code (%d)\n\n", status)); err != nil {
			return err
		}
		return refused(errors.New(strings.TrimSpace(string(body))))
	}
	if err := json.Unmarshal(body, new(login)); err != nil {
		return refused(fmt.Errorf("the answer to the login holds no token: %w", err))
	}
	path, err := loginFile()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), ownerEnter)
	}
	if err == nil {
		err = os.WriteFile(path, body, ownerOnly)
	}
	if err != nil {
		return refused(fmt.Errorf("store the login: %w", err))
	}
	return print(cmd, "Login succeeded.\n")
}

// ask prints a prompt and reads a line.
func ask(cmd *cli.Command, in *bufio.Reader, prompt string) (string, error) {
	if err := print(cmd, prompt); err != nil {
		return "", err
	}
	line, err := in.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", &failure{status: exitLocal, err: fmt.Errorf("read the answer to %q: %w", prompt, err)}
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// askSecret asks without echo if a person is typing.
func askSecret(cmd *cli.Command, in *bufio.Reader, prompt string) (string, error) {
	f, ok := cmd.Root().Reader.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return ask(cmd, in, prompt)
	}
	if err := print(cmd, prompt); err != nil {
		return "", err
	}
	secret, err := term.ReadPassword(int(f.Fd()))
	if err != nil {
		return "", &failure{status: exitLocal, err: fmt.Errorf("read the password: %w", err)}
	}
	return string(secret), print(cmd, "\n")
}
