// Package support makes support bundles: what is needed to find out what is wrong with a
// cluster, from netmaster and from the agents of all hosts, without secrets and of bounded size.
//
// Everything passes through utils/redact, whoever has made it. Of the store's keys outside of the
// objects and their state, only names and sizes are told.
package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/redact"
	"github.com/contiv/netplugin/utils/version"
)

// perFile is how long one file of an agent may take; a host that does not answer its first one
// in time is not asked further.
const perFile = 4 * time.Second

// Agents are asked for pages of their REST API.
type Agents interface {
	Page(ctx context.Context, host, path string) ([]byte, error)
}

// Config is where the files come from.
type Config struct {
	Agents  Agents
	Store   objdb.Store
	Cluster func(ctx context.Context) (*clusterapi.Cluster, error)
	Doctor  func(ctx context.Context) (*doctorapi.Report, error)
	Flags   []string                // the command line of netmaster, as it was given
	Log     func(w io.Writer) error // writes the last lines of netmaster's log; nil: they are not kept
}

// pages are those of each agent, by the name of the file: the first one shows whether it answers.
func pages() [][2]string {
	all := [][2]string{
		{"healthz.json", "/healthz"},
		{"version.json", "/version"},
		{"doctor.json", doctorapi.PathAgent},
		{"agent.json", "/inspect/agent"},
		{"driver.json", "/inspect/driver"},
		{"nameserver.json", "/inspect/nameserver"},
		{"bgp.json", "/inspect/bgp"},
		{"rules.json", "/inspect/rules"},
		{"services.json", "/svcstats"},
		{"metrics.txt", "/metrics"},
	}
	for _, name := range doctorapi.AgentFiles() {
		all = append(all, [2]string{name + ".txt", doctorapi.PathAgentSupport + name})
	}
	return all
}

// Write writes a bundle of at most size bytes before compression. What could not be had is in the
// manifest; an error is one of writing.
func Write(ctx context.Context, cfg Config, w io.Writer, size int) error {
	a := newArchive(w, size, time.Now())
	a.list.Made, a.list.Version, a.list.Asked, a.list.Away = a.now.UTC(), version.Get().Version, []string{}, []doctorapi.Away{}
	cluster, err := cfg.Cluster(ctx)
	report, doctorErr := cfg.Doctor(ctx)
	flags := strings.Join(redact.Flags(cfg.Flags), "\n") + "\n"
	log, logErr := lastLines(cfg.Log)
	keys, keysErr := storeKeys(ctx, cfg.Store)
	failed := errors.Join(
		a.json("doctor.json", report, doctorErr), a.json("cluster.json", cluster, err), a.json("netmaster/version.json", version.Get(), nil),
		a.add("netmaster/flags.txt", []byte(flags), nil), a.add("netmaster/log.txt", log, logErr), a.json("store.json", keys, keysErr),
	)
	if cluster != nil {
		for _, h := range cluster.Hosts {
			failed = errors.Join(failed, a.host(ctx, cfg.Agents, h))
		}
	}
	return errors.Join(failed, a.close())
}

// lastLines are those of netmaster's log.
func lastLines(write func(io.Writer) error) ([]byte, error) {
	if write == nil {
		return nil, errors.New("no lines of the log are kept")
	}
	var b bytes.Buffer
	err := write(&b)
	return []byte(redact.Text(b.String())), err
}

// json adds a value.
func (a *archive) json(name string, v any, why error) error {
	text, err := json.Marshal(v)
	if why == nil {
		why = err
	}
	return a.add(name, redact.JSON(text), why)
}

// host adds the files of a host.
func (a *archive) host(ctx context.Context, agents Agents, h clusterapi.Host) (failed error) {
	if h.State == clusterapi.Gone {
		a.list.Away = append(a.list.Away, doctorapi.Away{Host: h.Host, Why: "it is not registered"})
		return nil
	}
	for i, p := range pages() {
		asked, cancel := context.WithTimeout(ctx, perFile)
		text, err := agents.Page(asked, h.Host, p[1])
		cancel()
		if i == 0 && err != nil {
			a.list.Away = append(a.list.Away, doctorapi.Away{Host: h.Host, Why: err.Error()})
			return nil
		}
		failed = errors.Join(failed, a.add("hosts/"+h.Host+"/"+p[0], redact.JSON(text), err))
	}
	a.list.Asked = append(a.list.Asked, h.Host)
	return failed
}

// key is a key of the store.
type key struct {
	Key      string          `json:"key"`
	Revision int64           `json:"revision"`
	Size     int             `json:"size"`
	Value    json.RawMessage `json:"value,omitempty"` // only of objects and their state
}

func storeKeys(ctx context.Context, store objdb.Store) ([]key, error) {
	kvs, _, err := store.List(ctx, state.Root)
	if err != nil {
		return nil, fmt.Errorf("list the keys of the store: %w", err)
	}
	keys := make([]key, len(kvs))
	for i, kv := range kvs {
		keys[i] = key{Key: kv.Key, Revision: kv.ModRevision, Size: len(kv.Value)}
		if shown(kv.Key) && json.Valid(kv.Value) {
			keys[i].Value = redact.JSON(kv.Value)
		}
	}
	return keys, nil
}

// shown reports whether the value of a key may be told, without its secrets.
func shown(key string) bool {
	for _, root := range []string{"obj/", "state/", "oper/"} {
		if strings.HasPrefix(key, state.Root+root) {
			return true
		}
	}
	return false
}
