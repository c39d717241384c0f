package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/errs"
)

// options of the command.
type options struct {
	bin, dir, document, store string
	mode                      string
	common                    size
	sizes                     []size
	changes, rate, seconds    int
	pods, policies            int
	away, limit               time.Duration
	out                       io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status, err := program(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		status = 1
	}
	os.Exit(status)
}

// program plays the role that the environment names.
func program(ctx context.Context) (status int, err error) {
	if text := os.Getenv(agentsVariable); text != "" {
		return 0, serveAgents(ctx, text, os.Stdin, os.Stdout)
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		return 2, err
	}
	if status, again, err := isolated(ctx); again || err != nil {
		return status, err
	}
	return 0, run(ctx, o)
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("scale", flag.ExitOnError)
	f.StringVar(&o.bin, "bin", "bin", "`directory` of the binaries of make build")
	f.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for stores and logs, which are removed at the end")
	f.StringVar(&o.document, "document", "docs/scale.md", "`file` to write; empty: none")
	f.StringVar(&o.store, "store", cliconf.StoreEmbedded, "embedded, etcd (one server, two netmasters) or consul (the same)")
	f.StringVar(&o.mode, "mode", "kubernetes", "`mode` of netmaster: kubernetes or docker")
	sizes := f.String("sizes", "10:10000,100:10000,1000:10000,1000:100000:10", "hosts:endpoints[:agents] of each `cluster` to measure; agents are fewer than hosts where only memory and start of one matter")
	f.IntVar(&o.common.Full, "full", 8, "full `agents`; the others are light")
	f.IntVar(&o.common.Tenants, "tenants", 1000, "`tenants`, besides one that has an endpoint on every host")
	f.IntVar(&o.common.Networks, "networks", 5000, "`networks` of all tenants")
	f.IntVar(&o.common.Groups, "groups", 5000, "`groups`, each under a policy of its own")
	f.IntVar(&o.common.Rules, "rules", 30000, "`rules` of all policies")
	f.IntVar(&o.common.Services, "services", 1000, "`services`")
	f.IntVar(&o.changes, "changes", 100, "`changes` of each kind, one after the other")
	f.IntVar(&o.rate, "rate", 500, "`changes` per second, all at the same time")
	f.IntVar(&o.seconds, "seconds", 10, "how many `seconds` these come")
	f.DurationVar(&o.limit, "limit", 20*time.Minute, "how long one cluster may take")
	f.IntVar(&o.pods, "pods", 1000, "`pods` of the cluster with NetworkPolicies")
	f.IntVar(&o.policies, "policies", 100, "its `NetworkPolicies`")
	f.DurationVar(&o.away, "away", 5*time.Second, "how long the store is down")
	_ = f.Parse(args) // it exits
	o.out = os.Stdout
	for text := range strings.SplitSeq(*sizes, ",") {
		s, err := o.common.with(text)
		if err != nil {
			return o, err
		}
		o.sizes = append(o.sizes, s)
	}
	return o, cliconf.OneOf("-store", &o.store, cliconf.StoreEmbedded, cliconf.StoreEtcd, cliconf.StoreConsul)
}

// maxHosts is how many have addresses.
const maxHosts = 60_000

// with is a size with hosts, endpoints and agents of a text.
func (s size) with(text string) (size, error) {
	for i, part := range strings.Split(text, ":") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || i > 2 {
			return s, errs.New(errs.Invalid, "-sizes %q: expected hosts:endpoints or hosts:endpoints:agents", text)
		}
		*[]*int{&s.Hosts, &s.Endpoints, &s.Agents}[i] = n
	}
	if s.Agents == 0 {
		s.Agents = s.Hosts
	}
	switch {
	case s.Endpoints == 0 || s.Agents < 2 || s.Agents > s.Hosts || s.Hosts > maxHosts:
		return s, errs.New(errs.Invalid, "-sizes %q: expected 2 to %d hosts, and 2 agents or more, as many as hosts at most", text, maxHosts)
	case s.Tenants < 1 || s.Networks < s.Tenants || s.Networks > 250*s.Tenants || s.Groups < s.Tenants || s.Rules < 0 || s.Services < 0 || s.Full < 1:
		return s, errs.New(errs.Invalid, "expected a tenant, a network (250 at most) and a group in each, and a full agent")
	}
	return s, nil
}

// run measures all sizes, and writes what came out.
func run(ctx context.Context, o options) error {
	var failures error
	r := report{options: o, machine: machine(), loadBefore: loadAverage()}
	for _, s := range o.sizes {
		say("== %d hosts, %d agents, %d endpoints", s.Hosts, s.Agents, s.Endpoints)
		f, err := measureWithin(ctx, o, s)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			say("%v", err)
			failures = errors.Join(failures, err)
		}
		r.results = append(r.results, f)
	}
	say("== %d pods, %d NetworkPolicies", o.pods, o.policies)
	var err error
	if r.policies, err = measurePolicies(ctx, o.pods, o.policies, o.changes); err != nil {
		return err
	}
	r.loadAfter = loadAverage()
	if err := r.write(o.out); err != nil || o.document == "" {
		return errors.Join(failures, err)
	}
	f, err := os.Create(o.document)
	if err != nil {
		return err
	}
	if err := r.write(f); err != nil {
		f.Close()
		return err
	}
	return errors.Join(failures, f.Close())
}

// measureWithin measures one size as long as it may take; the figures until then count.
func measureWithin(ctx context.Context, o options, s size) (figures, error) {
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	f, err := measure(limited, o, s)
	if err != nil && f == nil {
		f = figures{}
	}
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		f["failed"] = "no: " + strings.ReplaceAll(strings.TrimSuffix(why, "; "), "|", "/")
	}
	return f, err
}

// say tells how the run goes on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
