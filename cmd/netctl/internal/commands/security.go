package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/securityapi"
)

// askSecurity sends a request about certificates, and reads the answer into v.
func askSecurity(ctx context.Context, cmd *cli.Command, method, path string, body, v any) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	resp, err := c.Do(ctx, method, path, body)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, securityapi.MaxList))
	if err != nil {
		return refused(fmt.Errorf("read the answer: %w", err))
	}
	if resp.StatusCode != http.StatusOK {
		return refused(securityError(resp.StatusCode, text))
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return refused(fmt.Errorf("the answer is not what was expected: %w", err))
	}
	return nil
}

// atOnce takes the option --wait away from a command whose change hosts do not apply.
func atOnce(cmd *cli.Command) *cli.Command {
	cmd.Flags = slices.DeleteFunc(slices.Clone(cmd.Flags), func(f cli.Flag) bool { return slices.Contains(f.Names(), "wait") })
	return cmd
}

func securityError(status int, text []byte) error {
	var said securityapi.Error
	if json.Unmarshal(text, &said) == nil && said.Error != "" {
		return errors.New(said.Error)
	}
	if status == http.StatusNotFound {
		return errors.New("netmaster has no certificate authority: it runs with --tls off, or is an earlier version")
	}
	return fmt.Errorf("%d %s %s", status, http.StatusText(status), strings.TrimSpace(string(text)))
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
