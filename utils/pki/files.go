package pki

import (
	"bytes"
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// Files are the certificates of a user's own public key infrastructure. The certificates'
// organizational units must be those of Unit.
type Files struct{ CA, Cert, Key string }

// rereadEvery is how often files are compared with what is in use. Mounted Secrets are
// replaced by symbolic links, of which no watch of a file tells.
const rereadEvery = 10 * time.Second

// Load reads the files into credentials. The error names the file, and what to do about it.
func (f Files) Load(c *Credentials) error {
	s, err := f.read()
	if err != nil {
		return err
	}
	return f.use(c, s)
}

// Follow reads the files again when they change, until ctx ends. What is not in order is
// logged, once, and does not count: the former certificate stays in use.
func (f Files) Follow(ctx context.Context, c *Credentials, log logrus.FieldLogger) {
	var last Stored // the first comparison is with nothing: a file may have changed since Load
	said, used := "", c.Leaf()
	for retry.Pause(ctx, rereadEvery) {
		s, err := f.read()
		if err == nil && s.equal(last) {
			said = ""
			continue
		}
		if err == nil {
			err = f.use(c, s)
		}
		switch {
		case err == nil && c.Leaf().Equal(used):
			last, said = s, ""
		case err == nil:
			last, said, used = s, "", c.Leaf()
			log.WithField("expires", c.Leaf().NotAfter.UTC().Format(time.RFC3339)).Info("certificate files changed, new certificate in use")
		case err.Error() != said:
			said = err.Error()
			log.WithError(err).Error("cannot use the certificate files, the former certificate stays in use")
		}
	}
}

func (f Files) read() (s Stored, err error) {
	if f.CA == "" || f.Cert == "" || f.Key == "" {
		return s, errs.New(errs.Invalid, "expected all three of --tls-ca, --tls-cert and --tls-key")
	}
	if s.Roots, err = ReadFile(f.CA); err != nil {
		return s, err
	}
	if s.Cert, err = ReadFile(f.Cert); err != nil {
		return s, err
	}
	s.Key, err = ReadFile(f.Key)
	return s, err
}

// use checks everything before anything is replaced.
func (f Files) use(c *Credentials, s Stored) error {
	trial := NewCredentials()
	if err := trial.SetRoots(s.Roots); err != nil {
		return errs.New(errs.Invalid, "--tls-ca %s: %w", f.CA, err)
	}
	if err := trial.SetPair(s.Cert, s.Key); err != nil {
		return errs.New(errs.Invalid, "--tls-cert %s, --tls-key %s: %w", f.Cert, f.Key, err)
	}
	chain, err := ParseCertificates(s.Cert)
	if err != nil {
		return errs.New(errs.Invalid, "--tls-cert %s: %w", f.Cert, err)
	}
	if _, err := trial.Verify(chain, UnitMaster, UnitAgent, UnitMonitor); err != nil {
		return errs.New(errs.Invalid, "--tls-cert %s against --tls-ca %s: %w", f.Cert, f.CA, err)
	}
	return s.Use(c)
}

func (s Stored) equal(o Stored) bool {
	return bytes.Equal(s.Cert, o.Cert) && bytes.Equal(s.Key, o.Key) && bytes.Equal(s.Roots, o.Roots)
}
