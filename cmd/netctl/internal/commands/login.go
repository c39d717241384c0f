package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/contiv/netplugin/contivmodel/client"
)

const (
	loginPath = client.AuthPath + "login/"
	maxLogin  = 64 << 10 // bytes of an answer to a login, and of what is read from stdin
)

func loginCommand() *cli.Command {
	return plain("login", "log in to the cluster, or to an authenticating proxy", noArguments(), []cli.Flag{
		&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "`NAME` of the user; asked for without"},
		&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from stdin, without prompts"},
		&cli.BoolFlag{Name: "oidc", Usage: "log in by a browser, on this or another device"},
		&cli.BoolFlag{Name: "token-stdin", Usage: "read a token from stdin and keep it, such as a service token"},
	}, logIn)
}

func logoutCommand() *cli.Command {
	return plain("logout", "end the last login, and forget it", noArguments(), nil, logOut)
}

// logOut ends the login on the server, if there is one that can be reached, and forgets it in
// any case.
func logOut(ctx context.Context, cmd *cli.Command) error {
	t, err := selected(cmd).find()
	if err == nil && t.token != "" {
		if err := endLogin(ctx, t); err != nil {
			_, _ = fmt.Fprintf(cmd.Root().ErrWriter, "The login is forgotten here, but it may still be good on the server: %s\n", err)
		}
	}
	if err := keepToken(t, ""); err != nil {
		return refused(fmt.Errorf("log out: %w", err))
	}
	return nil
}

func endLogin(ctx context.Context, t target) error {
	c, err := t.dial(0)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Auth(ctx, http.MethodPost, "logout/", nil, nil)
	var answer *client.Error
	if errors.As(err, &answer) && answer.Status < http.StatusInternalServerError {
		return nil // it is not good any more, or no login
	}
	return err
}

// logIn keeps a token that it gets in one of several ways.
func logIn(ctx context.Context, cmd *cli.Command) error {
	t, err := selected(cmd).resolve(-1, "") // a socket needs no login
	if err != nil {
		return refused(err)
	}
	if !usesTLS(t.urls) {
		return &failure{status: exitRequest, err: errors.New("login needs a URL that begins with https://"), help: true}
	}
	t.token = "" // the last one may be no good
	c, err := t.dial(0)
	if err != nil {
		return err
	}
	defer c.Close()
	if cmd.Bool("token-stdin") {
		return takeToken(ctx, cmd, t)
	}
	if cmd.Bool("oidc") {
		return logInByDevice(ctx, cmd, c, t)
	}
	in := bufio.NewReader(cmd.Root().Reader)
	name := cmd.String("user")
	if name == "" {
		if name, err = ask(cmd, in, "Username: "); err != nil {
			return err
		}
	}
	if name = strings.TrimSpace(name); name == "" {
		return refused(errors.New("a user name is required"))
	}
	password, err := readPassword(cmd, in, "Password: ")
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
	return keepLogin(cmd, t, resp.StatusCode, body)
}

// keepLogin says how a login went and stores the token.
func keepLogin(cmd *cli.Command, t target, status int, body []byte) error {
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
	var got struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
		return refused(errors.New("the answer to the login holds no token"))
	}
	return loggedIn(cmd, t, got.Token)
}

func loggedIn(cmd *cli.Command, t target, token string) error {
	if err := keepToken(t, token); err != nil {
		return refused(fmt.Errorf("store the login: %w", err))
	}
	return print(cmd, "Login succeeded.\n")
}

// takeToken keeps a token that somebody else has got, if the server accepts it.
func takeToken(ctx context.Context, cmd *cli.Command, t target) error {
	text, err := io.ReadAll(io.LimitReader(cmd.Root().Reader, maxLogin))
	if err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("read the token: %w", err)}
	}
	if t.token = strings.TrimSpace(string(text)); t.token == "" {
		return refused(errors.New("there is no token on stdin"))
	}
	c, err := t.dial(0)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Auth(ctx, http.MethodGet, "whoami/", nil, nil); err != nil {
		return refused(err)
	}
	return loggedIn(cmd, t, t.token)
}

// ask prints a prompt and reads a line.
func ask(cmd *cli.Command, in *bufio.Reader, prompt string) (string, error) {
	if err := print(cmd, prompt); err != nil {
		return "", err
	}
	return readLine(in, prompt)
}

func readLine(in *bufio.Reader, prompt string) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", &failure{status: exitLocal, err: fmt.Errorf("read the answer to %q: %w", prompt, err)}
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// readPassword asks for a password, or reads it from stdin without a prompt.
func readPassword(cmd *cli.Command, in *bufio.Reader, prompt string) (string, error) {
	if cmd.Bool("password-stdin") {
		return readLine(in, prompt)
	}
	return askSecret(cmd, in, prompt)
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
