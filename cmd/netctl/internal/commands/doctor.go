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
	"github.com/contiv/netplugin/state/doctorapi"
)

// Exit statuses of netctl doctor, by the findings. What cannot be asked at all is a finding.
const (
	exitWarnings = 1
	exitErrors   = 2
)

func doctorCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "host", Usage: "ask this `HOST` only; may be repeated"},
		jsonFlag(),
	}
	return leaf("doctor", "ask every host, and say what is wrong and what to do; the status is 1 with warnings, 2 with errors", noArguments(), flags, runDoctor)
}

func runDoctor(ctx context.Context, cmd *cli.Command) error {
	t, err := selected(cmd).find()
	if err != nil {
		return err
	}
	c, err := t.dial(0) // no leader is a finding, not a reason to wait
	if err != nil {
		return err
	}
	report, err := c.Doctor(ctx, cmd.StringSlice("host")...)
	if unserved(err) {
		report, err = examineMaster(ctx, c, err), nil
	}
	if err != nil {
		return refused(err)
	}
	if err := show(cmd, report, doctorText(report)); err != nil {
		return err
	}
	return verdict(report)
}

// unserved reports whether an error means that no netmaster can examine the cluster, rather
// than that it refuses to.
func unserved(err error) bool {
	var answer *client.Error
	if errors.As(err, &answer) {
		return answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusBadGateway
	}
	return err != nil
}

// examineMaster says what is wrong when no netmaster can examine the cluster.
func examineMaster(ctx context.Context, c *client.Client, why error) *doctorapi.Report {
	r := &doctorapi.Report{Made: time.Now().UTC(), Checks: []string{"netmaster"}, Asked: []string{}, Away: []doctorapi.Away{}}
	find := func(code, text, do string) {
		r.Findings = append(r.Findings, doctorapi.Finding{Code: code, Severity: doctorapi.Error, Object: "netmaster", Text: text, Do: do})
	}
	health, err := c.Health(ctx)
	switch {
	case err != nil:
		find("netmaster-away", "no netmaster answers: "+err.Error(), "start one: systemctl start netmaster; see journalctl -u netmaster")
	case len(health.Reasons) == 0:
		find("netmaster-busy", "netmaster is well but cannot examine the cluster now: "+why.Error(), "run netctl doctor again")
	default:
		for _, reason := range health.Reasons {
			find("no-leader", "nothing can be changed: "+reason, "see that most of the store's members run and reach each other; hosts go on forwarding meanwhile")
		}
	}
	return r
}

// verdict is the exit status of a report.
func verdict(r *doctorapi.Report) error {
	n := tally(r)
	switch {
	case n[doctorapi.Error] > 0:
		return &failure{status: exitErrors, err: errors.New(tallyText(n))}
	case n[doctorapi.Warning] > 0:
		return &failure{status: exitWarnings, err: errors.New(tallyText(n))}
	}
	return nil
}

func tally(r *doctorapi.Report) map[doctorapi.Severity]int {
	n := map[doctorapi.Severity]int{}
	for _, f := range r.Findings {
		n[f.Severity]++
	}
	return n
}

func tallyText(n map[doctorapi.Severity]int) string {
	return fmt.Sprintf("%s, %s", counted(n[doctorapi.Error], "error"), counted(n[doctorapi.Warning], "warning"))
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// doctorText shows a report to people.
func doctorText(r *doctorapi.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s: %s [%s]\n    to do: %s\n", f.Severity, f.Object, f.Text, f.Code, f.Do)
	}
	if len(r.Findings) == 0 {
		b.WriteString("Nothing is wrong.\n")
	}
	fmt.Fprintf(&b, "Asked: %s.", orNobody(r.Asked))
	if len(r.Away) > 0 {
		var names []string
		for _, a := range r.Away {
			names = append(names, a.Host)
		}
		fmt.Fprintf(&b, " Not checked, since they do not answer: %s.", strings.Join(names, ", "))
	}
	return b.String() + "\n"
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "no host"
	}
	return strings.Join(names, ", ")
}
