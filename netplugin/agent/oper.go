package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/retry"
)

// operWriter keeps the host's operational records in the store equal to what a
// function says. It is off the path of attaching a container: whoever reads the
// records may see them late.
type operWriter struct {
	cfg  Config
	want func() (records map[string]state.OperEndpoint, known bool)
	kick chan struct{}

	// records is used by run only.
	records *delta.Map[string, state.OperEndpoint]
}

func newOperWriter(cfg Config, want func() (map[string]state.OperEndpoint, bool)) *operWriter {
	return &operWriter{
		cfg: cfg, want: want, kick: make(chan struct{}, 1),
		records: delta.NewComparable[string, state.OperEndpoint](),
	}
}

func (w *operWriter) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *operWriter) run(ctx context.Context) error {
	loaded, said := false, false
	again := retry.New(500*time.Millisecond, 10*time.Second)
	for {
		var err error
		if !loaded {
			err = w.load(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = w.flush(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			said = false
			again.Reset()
			select {
			case <-ctx.Done():
			case <-w.kick:
			}
			continue
		}
		if !said {
			w.cfg.Log.WithError(err).Warn("cannot write operational records; retrying")
			said = true
		}
		again.Wait(ctx)
	}
}

// load reads which records of this host exist.
func (w *operWriter) load(ctx context.Context) error {
	kvs, _, err := w.cfg.Store.List(ctx, state.OperEndpointRt)
	if err != nil {
		return fmt.Errorf("list operational records: %w", err)
	}
	for _, kv := range kvs {
		var rec state.OperEndpoint
		if json.Unmarshal(kv.Value, &rec) == nil && rec.HomingHost == w.cfg.HostLabel && rec.ID != "" {
			w.records.SetActual(rec.ID, rec)
		}
	}
	return nil
}

// recordsAtOnce is how many records go with one request.
const recordsAtOnce = 64

func (w *operWriter) flush(ctx context.Context) error {
	want, known := w.want()
	if !known {
		return nil
	}
	w.records.ReplaceDesired(want)
	for part := range slices.Chunk(slices.Collect(w.records.Pending()), recordsAtOnce) {
		put := map[string]*state.OperEndpoint{}
		for _, c := range part {
			put[c.Key] = nil
			if c.Op != delta.Remove {
				put[c.Key] = &c.Want
			}
		}
		ask, cancel := context.WithTimeout(ctx, askWithin)
		err := w.cfg.Master.PutHostRecords(ask, w.cfg.HostLabel, masterapi.HostRecords{Endpoints: put})
		cancel()
		if err != nil {
			return fmt.Errorf("write operational records: %w", err)
		}
		for _, c := range part {
			w.records.Applied(c)
		}
	}
	return nil
}
