package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// Paths of the calls that are about access.
const (
	canIPath  = "/api/v1/security/can-i"
	auditPath = "/api/v1/security/audit"
)

func canICommand() *cli.Command {
	return atOnce(leaf("can-i", "say whether a request is allowed; the exit status is 3 if it is not",
		arguments{names: "VERB OBJECT", count: 2, missing: "Verb (create, delete, get, inspect, list or update) and object (TYPE/KEY, TYPE or /PATH) required"}, nil, canI))
}

func canI(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	var answer struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason"`
	}
	question := map[string]string{"verb": cmd.Args().Get(0), "object": cmd.Args().Get(1)}
	if err := c.JSON(ctx, http.MethodPost, canIPath, question, &answer); err != nil {
		return refused(err)
	}
	if !answer.Allowed {
		return &failure{status: exitRequest, err: errors.New("no: " + answer.Reason)}
	}
	return print(cmd, "yes\n")
}

// auditRecord is what is shown of a record.
type auditRecord struct {
	Time     time.Time `json:"time"`
	Who      string    `json:"who"`
	How      string    `json:"how"`
	Source   string    `json:"source"`
	Verb     string    `json:"verb"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
	Reason   string    `json:"reason"`
	Revision string    `json:"revision"`
}

func auditCommand() *cli.Command {
	return leaf("audit", "show who changed what through a netmaster, and who was refused", noArguments(), []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "only records after a `TIME` (RFC 3339), or of the last DURATION"},
		&cli.StringFlag{Name: "user", Usage: "only records of the user `NAME`"},
		&cli.BoolFlag{Name: "denied", Usage: "only requests that were refused"},
		&cli.BoolFlag{Name: "follow", Usage: "go on with new records"},
		jsonFlag(),
	}, showAudit)
}

func showAudit(ctx context.Context, cmd *cli.Command) error {
	query := url.Values{}
	for _, name := range []string{"denied", "follow"} {
		if cmd.Bool(name) {
			query.Set(name, "true")
		}
	}
	if user := cmd.String("user"); user != "" {
		query.Set("user", user)
	}
	if text := cmd.String("since"); text != "" {
		since, err := sinceTime(text, time.Now())
		if err != nil {
			return err
		}
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodGet, auditPath+"?"+query.Encode(), nil)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return refused(errors.New(strings.TrimSpace(string(text))))
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 64<<10)
	for in.Scan() {
		line := in.Text() + "\n"
		if !cmd.Bool("json") {
			line = auditLine(in.Bytes())
		}
		if err := print(cmd, line); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil && ctx.Err() == nil {
		return refused(fmt.Errorf("the answer broke off: %w", err))
	}
	return nil
}

// sinceTime reads a time, or how long ago it was.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, misuse("Invalid since %q: expected a time like 2026-01-02T15:04:05Z, or a duration like 1h", text)
	}
	return at, nil
}

func auditLine(text []byte) string {
	var r auditRecord
	if json.Unmarshal(text, &r) != nil {
		return string(text) + "\n"
	}
	parts := []string{r.Time.UTC().Format(time.RFC3339), r.Who, "(" + strings.TrimSpace(r.How+" "+r.Source) + ")", r.Verb, r.Path, strconv.Itoa(r.Status)}
	if r.Reason != "" {
		parts = append(parts, strconv.Quote(r.Reason))
	}
	return strings.Join(parts, " ") + "\n"
}
