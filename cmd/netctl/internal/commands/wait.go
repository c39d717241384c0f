package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
)

const (
	waitDefault = time.Minute
	askAgain    = 300 * time.Millisecond // when nobody leads at the moment
	hostsShown  = 5                      // names in a message
)

// waitFlag is on every command that changes something.
func waitFlag() cli.Flag {
	return &cli.GenericFlag{
		Name: "wait", Value: new(patience),
		Usage: "wait until every live host has applied the change; --wait=`DURATION` bounds that (--wait alone: " + waitDefault.String() + ")",
	}
}

// patience is the value of the flag, which may stand alone; 0: do not wait.
type patience time.Duration

func (p *patience) String() string { return time.Duration(*p).String() }

// IsBoolFlag lets the flag stand without a value.
func (p *patience) IsBoolFlag() bool { return true }

// Get implements cli.Value.
func (p *patience) Get() any { return time.Duration(*p) }

// Set implements cli.Value. A flag that stands alone is set to "true".
func (p *patience) Set(text string) error {
	if text == "true" {
		*p = patience(waitDefault)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("expected a duration like 30s")
	}
	*p = patience(d)
	return nil
}

// awaitHosts waits, if the user wants that, until all live hosts have applied a change,
// and says on stderr how far they are.
func awaitHosts(ctx context.Context, cmd *cli.Command, c *client.Client, ch client.Change) error {
	limit, _ := cmd.Value("wait").(time.Duration)
	if limit == 0 {
		return nil
	}
	end := time.Now().Add(limit)
	said := ""
	for {
		left := max(time.Until(end), 0)
		a, err := c.Applied(ctx, ch, min(left, clusterapi.MaxWait))
		switch {
		case err != nil && (left == 0 || ctx.Err() != nil || !passing(err)):
			return refused(fmt.Errorf("the change is made, but whether hosts have applied it is not known: %w", err))
		case err != nil:
			pause := time.NewTimer(min(askAgain, left))
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			pause.Stop()
			continue
		case len(a.Missing) == 0:
			return tell(cmd, fmt.Sprintf("applied on %d of %d hosts", a.Hosts, a.Hosts))
		case left == 0:
			return refused(fmt.Errorf("%s after %s; the change is made, and hosts apply it as soon as they can%s",
				progress(a), limit, because(a)))
		}
		if line := progress(a); line != said {
			said = line
			if err := tell(cmd, line); err != nil {
				return err
			}
		}
	}
}

// passing reports whether an error may be over when the same is asked again.
func passing(err error) bool {
	var answer *client.Error
	return errs.Is(err, errs.Unavailable) || errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable
}

// progress says how many hosts have a change, and which have not.
func progress(a *clusterapi.Applied) string {
	names := make([]string, 0, hostsShown)
	for _, m := range a.Missing[:min(len(a.Missing), hostsShown)] {
		names = append(names, m.Host)
	}
	text := fmt.Sprintf("applied on %d of %d hosts, waiting for %s", a.Hosts-len(a.Missing), a.Hosts, strings.Join(names, ", "))
	if more := len(a.Missing) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// because says what is amiss with the hosts that progress names.
func because(a *clusterapi.Applied) string {
	text := ""
	for _, m := range a.Missing[:min(len(a.Missing), hostsShown)] {
		if len(m.Reasons) > 0 {
			text += fmt.Sprintf("\n%s: %s", m.Host, strings.Join(m.Reasons, "; "))
		}
	}
	return text
}

// tell writes a message.
func tell(cmd *cli.Command, line string) error {
	if _, err := fmt.Fprintln(cmd.Root().ErrWriter, line); err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("write a message: %w", err)}
	}
	return nil
}
