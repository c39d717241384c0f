package intent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Config is what an Engine needs besides the store.
type Config struct {
	Log logrus.FieldLogger
	// ClusterMode is docker, kubernetes, swarm-mode or test.
	ClusterMode string
	// FwdMode (bridge | routing) and Infra (default | aci | aci-opflex) are the settings
	// a new cluster starts with.
	FwdMode, Infra string
	// AgentPort is where agents serve HTTP; 0 means 9090.
	AgentPort int
	// AgentDial connects to agents; nil: without TLS.
	AgentDial agents.Dial
	// Secrets seals passwords for the store; nil: they are stored as they are.
	Secrets Sealer
	// OpenState leaves passwords in the records of agents that cannot ask for them yet.
	OpenState bool
	// Loops makes what keeps things outside the store as the objects say; nil: nothing.
	// The Engine runs them.
	Loops func(*Engine) []reconcile.Loop
}

// Sealer makes secrets unreadable; see netmaster/seal.
type Sealer interface {
	Seal(secret []byte) (string, error)
	Open(sealed string) ([]byte, error)
}

// Engine is the intent of one term. Safe for concurrent use.
type Engine struct {
	cfg    Config
	store  objdb.Store
	model  *model
	writer *writer
	agents *agents.Client
	loops  []reconcile.Loop

	done chan struct{} // closed when everything that New has started has ended
}

// New reads the store, repairs claims nobody owns, creates what must exist (the global
// settings, tenant default) and starts the writer, which ends with ctx, the term's.
func New(ctx context.Context, cfg Config, store objdb.Store, lead objdb.Leadership) (*Engine, error) {
	e := &Engine{
		cfg: cfg, store: store, model: newModel(cfg), agents: agents.New(store, cfg.AgentPort, cfg.AgentDial), done: make(chan struct{}),
	}
	commits := &committer{store: store, lead: lead, log: cfg.Log, pause: firstPause}
	// The mark comes first: it proves that this term lasts, and that no transaction of
	// an earlier one can come between the reads below.
	if err := commits.begin(ctx); err != nil {
		return nil, err
	}
	if err := commits.recover(ctx); err != nil {
		return nil, err
	}
	l := loader{model: e.model, store: store, log: cfg.Log, written: &commits.written}
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	if err := l.repair(ctx, commits); err != nil {
		return nil, err
	}
	e.writer = &writer{
		model: e.model, commits: commits, log: cfg.Log,
		queue: make(chan *request, queueLength), stopped: make(chan struct{}),
	}
	e.writer.metrics = newMetrics(func() int { return len(e.writer.queue) })
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		defer stop() // without a writer the term is over
		e.writer.run(ctx)
	})
	if err := e.prepare(ctx); err != nil {
		stop()
		running.Wait()
		return nil, err
	}
	if cfg.Loops != nil {
		e.loops = cfg.Loops(e)
	}
	for _, l := range e.loops {
		running.Go(func() { l.Run(ctx) })
	}
	running.Go(func() { e.sweepReserved(ctx) })
	go func() {
		defer close(e.done)
		defer stop()
		running.Wait()
	}()
	return e, nil
}

// Done is closed when everything that New has started has ended: the term is over.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Written returns the store revisions of the last change of the state that agents
// realise, and of the global settings. A host that has applied both is up to date. What
// was only taken away before this term does not count.
func (e *Engine) Written() (revision, settings int64) {
	w := &e.writer.commits.written
	return w.state.Load(), w.settings.Load()
}

// Collections returns the kinds of objects there are.
func (e *Engine) Collections() []Collection {
	all := make([]Collection, len(e.model.kinds))
	for i, k := range e.model.kinds {
		all[i] = k.serve(e)
	}
	return all
}

// flagsKey holds the start-up settings the last leader was given. Only when an
// operator has changed the flags since do they count against what users have set.
const flagsKey = state.OperRoot + "netmaster/flags"

// flags is the record under flagsKey.
type flags struct {
	FwdMode string `json:"fwd-mode"`
	Infra   string `json:"nw-infra-type"`
}

// prepare creates what every cluster has.
func (e *Engine) prepare(ctx context.Context) error {
	given := flags{FwdMode: e.cfg.FwdMode, Infra: e.cfg.Infra}
	if err := e.prepareGlobal(ctx, given); err != nil {
		return fmt.Errorf("create the global settings: %w", err)
	}
	tenants := e.model.tenants.collection(e)
	if _, err := tenants.Get(contivmodel.DefaultTenant); err != nil {
		t := &contivmodel.Tenant{Key: contivmodel.DefaultTenant, TenantName: contivmodel.DefaultTenant}
		if _, err := tenants.store(ctx, t); err != nil {
			return fmt.Errorf("create tenant %s: %w", contivmodel.DefaultTenant, err)
		}
	}
	return e.sealPasswords(ctx)
}

func (e *Engine) prepareGlobal(ctx context.Context, given flags) error {
	g, exists := e.model.globals.base[contivmodel.GlobalName]
	if !exists {
		_, err := e.model.globals.collection(e).store(ctx, &contivmodel.Global{
			Key: contivmodel.GlobalName, Name: contivmodel.GlobalName,
			ArpMode: contivmodel.DefaultArpMode, FwdMode: given.FwdMode, NetworkInfraType: given.Infra,
			PvtSubnet: contivmodel.DefaultPvtSubnet, Vlans: contivmodel.DefaultVLANs, Vxlans: contivmodel.DefaultVXLANs,
		})
		if err != nil {
			return err
		}
		return e.noteFlags(ctx, given)
	}
	if _, ok := e.model.globals.settings.base[""]; !ok {
		e.cfg.Log.Error("the record of the global settings that agents read is missing; writing it again")
		same := *g.v
		if _, err := e.model.globals.collection(e).store(ctx, &same); err != nil {
			return err
		}
	}
	last, known, err := e.lastFlags(ctx)
	if err != nil || known && last == given {
		return err
	}
	want := *g.v
	keep(&given.FwdMode, want.FwdMode)
	keep(&given.Infra, want.NetworkInfraType)
	if want.FwdMode != given.FwdMode || want.NetworkInfraType != given.Infra {
		log := e.cfg.Log.WithFields(logrus.Fields{
			"fwdMode": want.FwdMode, "fwdMode-flag": given.FwdMode, "infra": want.NetworkInfraType, "infra-flag": given.Infra,
		})
		want.FwdMode, want.NetworkInfraType = given.FwdMode, given.Infra
		switch _, err := e.model.globals.collection(e).store(ctx, &want); {
		case errs.Is(err, errs.InUse):
			log.WithError(err).Warn("flags differ from the stored settings; keeping the stored ones because networks use them")
		case err != nil:
			return err
		default:
			log.Warn("flags differ from the stored settings; replaced the stored ones")
		}
	}
	return e.noteFlags(ctx, flags{FwdMode: e.cfg.FwdMode, Infra: e.cfg.Infra})
}

func (e *Engine) lastFlags(ctx context.Context) (last flags, known bool, err error) {
	kv, err := e.store.Get(ctx, flagsKey)
	if errs.Is(err, errs.NotFound) {
		return last, false, nil
	}
	if err != nil {
		return last, false, fmt.Errorf("read the last leader's flags: %w", err)
	}
	known = json.Unmarshal(kv.Value, &last) == nil
	return last, known, nil
}

func (e *Engine) noteFlags(ctx context.Context, given flags) error {
	text, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("encode flags: %w", err)
	}
	txn := objdb.Txn{If: []objdb.Cmp{e.writer.commits.lead.Fence()}, Then: []objdb.Op{objdb.Put(flagsKey, text)}}
	switch _, err := e.store.Commit(ctx, txn); {
	case errors.Is(err, objdb.ErrCompareFailed):
		return errNotLeader()
	case err != nil:
		return fmt.Errorf("note the flags: %w", err)
	}
	return nil
}
