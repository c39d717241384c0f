package pki_test

import (
	"bytes"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/contiv/netplugin/utils/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue makes a certificate with its key and the roots of its authority.
func issue(t *testing.T, a *pki.Authority, s pki.Subject, now time.Time) pki.Stored {
	t.Helper()
	cert, key, err := a.Issue(s, now)
	if err != nil {
		t.Fatal(err)
	}
	return pki.Stored{Cert: cert, Key: key, Roots: pki.EncodeCertificates(a.Cert)}
}

func credentials(t *testing.T, s pki.Stored) *pki.Credentials {
	t.Helper()
	c := pki.NewCredentials()
	if err := s.Use(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text []byte) []*x509.Certificate {
	t.Helper()
	certs, err := pki.ParseCertificates(text)
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

// lines is what has been logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newLog() (*logrus.Logger, *lines) {
	log, l := logrus.New(), &lines{}
	log.SetOutput(l)
	return log, l
}
