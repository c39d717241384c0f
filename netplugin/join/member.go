package join

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// advice is what helps a host whose certificate does not count.
const advice = "create a new join token with: netctl host token create"

// Member is a host with a certificate. Create it with Join.
type Member struct {
	cfg    Config
	log    logrus.FieldLogger
	dir    pki.Dir
	creds  *pki.Credentials
	client *http.Client // to netmasters, by the certificate
	clock  clock

	mu   sync.Mutex // one request for a certificate at a time
	csr  []byte     // of the attempt under way, which may be repeated
	key  []byte
	said string
}

// Join returns a host's certificate: the one on disk, or, if there is none that counts, a new
// one, for which it tries until ctx ends.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	if cfg.Waiting == nil {
		cfg.Waiting = func(error) {}
	}
	if cfg.Compare == 0 {
		cfg.Compare = time.Minute
	}
	m := &Member{cfg: cfg, log: cfg.Log.WithField("host", cfg.Host), dir: pki.Dir(cfg.Dir), creds: pki.NewCredentials()}
	m.clock.log = m.log
	m.client = m.newClient(m.creds)
	err := m.load(time.Now())
	if err == nil {
		return m, nil
	}
	if !errs.Is(err, errs.NotFound) {
		m.log.WithError(err).Warn("the certificate on disk cannot be used, joining the cluster again")
	}
	pauses := retry.New(500*time.Millisecond, 15*time.Second)
	var reason error
	for {
		err := m.join(ctx)
		if err == nil {
			return m, nil
		}
		if reason == nil || ctx.Err() == nil { // that the time is over is no reason
			reason = err
			m.explain("cannot join the cluster; retrying", err)
			cfg.Waiting(err)
		}
		if !pauses.Wait(ctx) {
			return nil, reason
		}
	}
}

// Credentials are those of this host; they change as they are renewed.
func (m *Member) Credentials() *pki.Credentials { return m.creds }

// load takes the certificate on disk, if it counts.
func (m *Member) load(now time.Time) error {
	stored, err := m.dir.Load()
	if err != nil {
		return err
	}
	trial := pki.NewCredentials()
	if err := stored.Use(trial); err != nil {
		return err
	}
	leaf := trial.Leaf()
	switch owner := pki.PeerOf(leaf); {
	case owner.Name != m.cfg.Host || owner.Unit != pki.UnitAgent:
		return errs.New(errs.Invalid, "%s has the certificate of %s, expected that of agent %s", m.cfg.Dir, owner, m.cfg.Host)
	case !now.Before(leaf.NotAfter):
		return errs.New(errs.Invalid, "the certificate has expired at %s; %s", leaf.NotAfter.UTC().Format(time.RFC3339), advice)
	}
	return stored.Use(m.creds)
}

// Run keeps the certificate fresh until ctx ends.
func (m *Member) Run(ctx context.Context) error {
	defer m.client.CloseIdleConnections()
	var both sync.WaitGroup
	keeper := pki.Keeper{Credentials: m.creds, Renew: m.renew, Advice: advice, Log: m.log}
	both.Go(func() { keeper.Keep(ctx) })
	both.Go(func() { m.followAuthority(ctx) })
	both.Wait()
	return nil
}

// take stores an answer and puts it to use.
func (m *Member) take(answer securityapi.Certificate) error {
	s := pki.Stored{Cert: []byte(answer.Certificate), Key: m.key, Roots: []byte(answer.Roots)}
	trial := pki.NewCredentials()
	if err := s.Use(trial); err != nil {
		return errs.New(errs.Invalid, "netmaster's answer: %w", err)
	}
	if owner := pki.PeerOf(trial.Leaf()); owner.Name != m.cfg.Host || owner.Unit != pki.UnitAgent {
		return errs.New(errs.Invalid, "netmaster's answer is the certificate of %s, expected that of agent %s", owner, m.cfg.Host)
	}
	if err := m.dir.Save(s); err != nil {
		return err
	}
	m.csr, m.key, m.said = nil, nil, ""
	return s.Use(m.creds)
}

// request makes key and certificate request, unless those of an attempt whose answer may
// have been lost are there.
func (m *Member) request() error {
	if m.csr != nil {
		return nil
	}
	var err error
	m.csr, m.key, err = pki.NewRequest(m.cfg.Host)
	return err
}

// renew gets the next certificate by the one that there is, or, if that does not count any
// more, joins again.
func (m *Member) renew(ctx context.Context) error {
	err := m.renewByCertificate(ctx)
	if refused(err) {
		if jerr := m.join(ctx); jerr != nil {
			return errs.New(errs.KindOf(err), "%w; joining again: %w", err, jerr)
		}
		return nil
	}
	return err
}

func (m *Member) renewByCertificate(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.request(); err != nil {
		return err
	}
	return m.eachMaster(func(base string) error {
		var answer securityapi.Certificate
		_, err := securityapi.Call(ctx, m.client, http.MethodPost, base+securityapi.PathRenew, securityapi.RenewRequest{CSR: string(m.csr)}, &answer)
		if err != nil {
			return explainTLS(err)
		}
		return m.take(answer)
	})
}

// eachMaster tries netmasters until one does it. The error is that of a netmaster that
// refused, or else of the last one.
func (m *Member) eachMaster(try func(base string) error) error {
	var said error
	for _, base := range m.cfg.Masters() {
		err := try(base)
		if err == nil {
			return nil
		}
		err = errs.New(errs.KindOf(err), "%s: %w", base, err)
		if said == nil || !refused(said) {
			said = err
		}
	}
	if said == nil {
		return errs.New(errs.Unavailable, "no netmaster is known; expected a URL such as https://netmaster:9999")
	}
	return said
}

// refused reports whether a netmaster has decided, so that repeating helps only if something
// changes.
func refused(err error) bool {
	var r *securityapi.Refused
	if errors.As(err, &r) {
		return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
	}
	return errors.Is(err, errRejected)
}

// explain logs a reason once.
func (m *Member) explain(message string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err.Error() != m.said {
		m.said = err.Error()
		m.log.WithError(err).Warn(message)
	}
}
