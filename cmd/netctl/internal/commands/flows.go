package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/flowapi"
)

// newest is how many connections are listed unless another number is asked for.
const newest = 1000

func flowsCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what comes, until interrupted"},
		&cli.StringSliceFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "only connections of the tenant `NAME`; may be repeated"},
		&cli.StringFlag{Name: "from", Usage: "only connections that `END` opened: (part of) a container's or pod's name, an endpoint's id, a group, an address or a prefix"},
		&cli.StringFlag{Name: "to", Usage: "only connections to `END`: the same, or a service"},
		&cli.BoolFlag{Name: "either", Usage: "--from and --to are the two ends in either direction"},
		&cli.BoolFlag{Name: "denied", Usage: "only what was denied or rejected"},
		&cli.BoolFlag{Name: "allowed", Usage: "only what was allowed"},
		&cli.StringFlag{Name: "rule", Usage: "only what `RULE` decided: (part of) a policy's name, or POLICY/RULE-ID"},
		&cli.StringFlag{Name: "proto", Usage: "only the `PROTOCOL`: tcp, udp, icmp, icmpv6, sctp, or a number"},
		&cli.Uint16Flag{Name: "port", Aliases: []string{"p"}, Usage: "only the destination `PORT`"},
		&cli.StringFlag{Name: "host", Usage: "only what the host `LABEL` has seen"},
		&cli.StringFlag{Name: "since", Usage: "only what was open after a `TIME` (RFC 3339), or in the last DURATION"},
		&cli.IntFlag{Name: "limit", Usage: "at most the newest `NUMBER` of those recorded; 0: all", Value: newest},
		&cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "print as JSON, a line for each event"},
	}
	return leaf("flows", "list connections of all hosts, and what decided about them", noArguments(), flags, showFlows)
}

func showFlows(ctx context.Context, cmd *cli.Command) error {
	f, err := flowFilter(cmd, time.Now())
	if err != nil {
		return err
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	v := &flowView{cmd: cmd, limit: f.Limit, shown: map[string]string{}}
	if err := c.Flows(ctx, f, v.take); err != nil {
		return refused(err)
	}
	return v.end()
}

// flowFilter is what the options ask for.
func flowFilter(cmd *cli.Command, now time.Time) (flowapi.Filter, error) {
	f := flowapi.Filter{
		Tenants: cmd.StringSlice("tenant"), From: cmd.String("from"), To: cmd.String("to"), Either: cmd.Bool("either"), Rule: cmd.String("rule"),
		Proto: cmd.String("proto"), Port: cmd.Uint16("port"), Host: cmd.String("host"), Follow: cmd.Bool("follow"), Limit: cmd.Int("limit"),
	}
	switch {
	case cmd.Bool("denied") && cmd.Bool("allowed"):
		return f, misuse("--denied and --allowed exclude each other")
	case cmd.Bool("denied"):
		f.Verdict = string(flowapi.Denied)
	case cmd.Bool("allowed"):
		f.Verdict = string(flowapi.Allowed)
	}
	if text := cmd.String("since"); text != "" {
		since, err := sinceTime(text, now)
		if err != nil {
			return f, err
		}
		f.Since = since
	}
	return f, nil
}

// flowView shows a stream to people, or passes it on as JSON.
type flowView struct {
	cmd     *cli.Command
	limit   int
	records []flowapi.Record  // told before everything recorded was
	live    bool              // it was
	shown   map[string]string // what was printed, by ID; of the latest
	order   []string
	notes   []string
}

// mostShown bounds for how many connections changes are recognized.
const mostShown = 10_000

func (v *flowView) take(e flowapi.Event) error {
	if v.cmd.Bool("json") {
		if e.Heartbeat != nil {
			return nil
		}
		text, err := json.Marshal(e)
		if err != nil {
			return &failure{status: exitLocal, err: fmt.Errorf("write as JSON: %w", err)}
		}
		return print(v.cmd, string(text)+"\n")
	}
	switch {
	case e.Heartbeat != nil && e.Heartbeat.Live:
		return v.table()
	case e.Missing != nil:
		return v.note(missingText(*e.Missing))
	case e.Gap != nil:
		return v.note(gapText(*e.Gap))
	case e.Record != nil && v.live:
		return v.line(*e.Record)
	case e.Record != nil:
		v.records = append(v.records, *e.Record)
	}
	return nil
}

func missingText(m flowapi.Missing) string {
	return fmt.Sprintf("host %s did not answer: %s", printable(m.Host), printable(m.Error))
}

func gapText(g flowapi.Gap) string {
	return fmt.Sprintf("host %s left out %d from %s to %s: %s", printable(g.Host), g.Count, stampText(g.From), stampText(g.To), printable(g.Why))
}

// note prints what is missing: at once when the table is there, else below it.
func (v *flowView) note(text string) error {
	if v.live && v.cmd.Bool("follow") {
		return print(v.cmd, text+"\n")
	}
	v.notes = append(v.notes, text)
	return nil
}

// table prints what was recorded, each connection once.
func (v *flowView) table() error {
	v.live = true
	last := map[string]int{}
	for i, r := range v.records {
		last[r.ID] = i
	}
	var rows [][]string
	for i, r := range v.records {
		if last[r.ID] == i {
			row := flowRow(r)
			v.remember(r.ID, row)
			rows = append(rows, row)
		}
	}
	v.records = nil
	if len(rows) == v.limit && v.limit > 0 {
		v.notes = append(v.notes, fmt.Sprintf("these are the newest %d; see --limit and --since", v.limit))
	}
	text := flowTable().format(rows)
	for _, n := range v.notes {
		text += n + "\n"
	}
	v.notes = nil
	return print(v.cmd, text)
}

func (v *flowView) remember(id string, row []string) (changed bool) {
	text := strings.Join(row, "\t")
	old, known := v.shown[id]
	if v.shown[id] = text; !known {
		v.order = append(v.order, id)
	}
	if len(v.order) > mostShown {
		delete(v.shown, v.order[0])
		v.order = v.order[1:]
	}
	return old != text
}

// line prints a connection that is new, or has changed.
func (v *flowView) line(r flowapi.Record) error {
	row := flowRow(r)
	if !v.remember(r.ID, row) {
		return nil
	}
	t := flowTable()
	var cells strings.Builder
	for i, cell := range row {
		fmt.Fprintf(&cells, "%-*s  ", max(len(t.headers[i]), t.dashes[i]), cell)
	}
	return print(v.cmd, strings.TrimRight(cells.String(), " ")+"\n")
}

// end prints what has not been printed when the stream ends.
func (v *flowView) end() error {
	if v.cmd.Bool("json") {
		return nil
	}
	if !v.live {
		return v.table()
	}
	text := ""
	for _, n := range v.notes {
		text += n + "\n"
	}
	return print(v.cmd, text)
}

func flowTable() table {
	return table{
		headers: []string{"Time", "Duration", "Verdict", "Proto", "From", "To", "Decided by", "Hosts"},
		dashes:  []int{20, 8, 8, 5, 24, 24, 24, 5},
	}
}

func flowRow(r flowapi.Record) []string {
	took := "open"
	switch {
	case r.Count > 1:
		took = fmt.Sprintf("%dx", r.Count)
	case r.Verdict != flowapi.Allowed:
		took = "-"
	case !r.End.IsZero():
		took = r.End.Sub(r.Start).Round(time.Second).String()
	}
	to := endpointText(r.Dst, r.Proto)
	if r.Service != nil {
		to += " by service " + printable(cmp.Or(r.Service.Name, r.Service.Address.String()))
	}
	rules := make([]string, len(r.Decisions))
	for i, d := range r.Decisions {
		rules[i] = decisionText(d)
	}
	by := strings.Join(slices.Compact(rules), "; ")
	if r.WouldBe != nil {
		by += "; audit: would be " + string(r.WouldBe.Verdict) + " by " + ruleText(*r.WouldBe)
	}
	from := r.Src
	from.Port = 0 // of no interest
	return []string{stampText(r.Start), took, string(r.Verdict), printable(r.Proto), endpointText(from, ""), to, by, printable(strings.Join(r.Hosts, ","))}
}

// decisionText says what decided, and where if it is one end.
func decisionText(d flowapi.Decision) string {
	if d.At == flowapi.AtBoth {
		return ruleText(d)
	}
	return printable(d.At) + ": " + ruleText(d)
}

// ruleText names what decided.
func ruleText(d flowapi.Decision) string {
	switch {
	case d.Policy != "" && d.Rule != "":
		return printable(d.Policy + "/" + d.Rule)
	case d.Policy != "":
		return printable(d.Policy)
	}
	return printable(strings.ReplaceAll(d.By, "-", " "))
}

// endpointText names an end for people.
func endpointText(e flowapi.End, proto string) string {
	text := e.Address.String()
	switch {
	case e.Port != 0 && strings.HasPrefix(proto, "icmp"):
		text += fmt.Sprintf(" type %d", e.Port>>8)
	case e.Port != 0 && e.Address.Is6():
		text = fmt.Sprintf("[%s]:%d", text, e.Port)
	case e.Port != 0:
		text += fmt.Sprintf(":%d", e.Port)
	}
	if name := cmp.Or(e.Name, e.Endpoint); name != "" {
		return printable(name) + " (" + text + ")"
	}
	return text
}

func stampText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// printable is a text without what a terminal would take for a command.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
