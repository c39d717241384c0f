package lab

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contiv/netplugin/utils/tlsport"
)

// Where the daemons of a host keep what they need for TLS, as the host sees it.
const (
	MasterTLSDir  = "/var/lib/contiv/tls"
	AgentTLSDir   = "/var/lib/contiv/tls-agent"
	joinTokenFile = "/etc/contiv/join-token"
	secretFile    = "/etc/contiv/cluster-secret"
)

// secured reports whether the daemons of the lab speak TLS.
func (c Config) secured() bool { return c.TLS.TLS() }

// File is a file of the host's own, as this machine sees it.
func (h *Host) File(path string) string { return h.file(path) }

// masterTLS are the flags of netmaster for TLS.
func (h *Host) masterTLS() []string {
	c := h.lab.cfg
	if !c.secured() {
		return nil
	}
	args := []string{"--tls", string(c.TLS)}
	if c.Masters == 1 {
		return args
	}
	args = append(args, "--cluster-secret-file", secretFile)
	if h.Number > 1 {
		args = append(args, "--join", h.lab.masterURLs(h))
	}
	return args
}

// agentTLS are the flags of netplugin for TLS.
func (h *Host) agentTLS() []string {
	c := h.lab.cfg
	if !c.secured() {
		return nil
	}
	args := []string{"--tls", string(c.TLS), "--netmaster", h.lab.masterURLs(nil)}
	if h.Number > c.Masters {
		args = append(args, "--join-token-file", joinTokenFile)
	}
	return args
}

// masterURLs are those of all netmasters but one.
func (l *Lab) masterURLs(but *Host) string {
	var urls []string
	for _, m := range l.Masters() {
		if m != but {
			urls = append(urls, fmt.Sprintf("https://%s:9999", m.ControlIP()))
		}
	}
	return strings.Join(urls, ",")
}

// shareSecret gives the cluster's secret to the hosts of netmasters.
func (l *Lab) shareSecret() error {
	if !l.cfg.secured() || l.cfg.Masters == 1 {
		return nil
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	for _, m := range l.Masters() {
		if err := m.writeSecret(secretFile, hex.EncodeToString(secret)); err != nil {
			return err
		}
	}
	return nil
}

// giveToken gives the host its join token, once netmaster is there to make one.
func (h *Host) giveToken(ctx context.Context) error {
	if !h.lab.cfg.secured() || h.Number <= h.lab.cfg.Masters {
		return nil
	}
	if _, err := os.Stat(h.file(joinTokenFile)); err == nil {
		return nil // it starts again
	}
	first := h.lab.hosts[0]
	select {
	case <-first.up:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	token, err := first.Output(ctx, "netctl", "host", "token", "create", "--host", h.Name)
	if err != nil {
		return err
	}
	return h.writeSecret(joinTokenFile, token)
}

func (h *Host) writeSecret(path, text string) error {
	path = h.file(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o600)
}

// askReady asks a daemon of ours whether it is ready, with TLS and without: a test may have
// started it in another mode than the lab's. It does not look at the certificate.
func (h *Host) askReady(ctx context.Context, port int) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: h.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	schemes := []string{"http", "https"}
	if h.lab.cfg.TLS == tlsport.Require {
		slices.Reverse(schemes)
	}
	var failed []error
	for _, scheme := range schemes {
		err := askWith(ctx, client, fmt.Sprintf("%s://127.0.0.1:%d/readyz", scheme, port))
		if err == nil {
			return nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
