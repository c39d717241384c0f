package main

import (
	"net/http"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netmaster/audit"
	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/utils/httpguard"
	"github.com/contiv/netplugin/utils/pki"
)

// auditOptions are the options about what is noted, and by which names this netmaster may
// be called.
type auditOptions struct {
	log, hosts string
	megabytes  int
	keep       int
}

func (o *auditOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "audit-log", Category: "security", Destination: &o.log, TakesFile: true, Sources: env.Var("AUDIT_LOG"),
			Usage: "`file` of the audit log, or syslog, or none (default: audit.log in --tls-dir); used with TLS only",
		},
		&cli.IntFlag{
			Name: "audit-log-size", Category: "security", Value: 64, Destination: &o.megabytes, Sources: env.Var("AUDIT_LOG_SIZE"),
			Usage: "`MiB` at which the audit log is rotated",
		},
		&cli.IntFlag{
			Name: "audit-log-keep", Category: "security", Value: 8, Destination: &o.keep, Sources: env.Var("AUDIT_LOG_KEEP"),
			Usage: "how many rotated audit logs are kept",
		},
		&cli.StringFlag{
			Name: "allowed-hosts", Category: "security", Destination: &o.hosts, Sources: env.Var("ALLOWED_HOSTS"),
			Usage: "comma-separated `names` by which clients may call this netmaster, besides its addresses, localhost and netmaster; used with TLS only",
		},
	}
}

// open opens the audit log; nil for none.
func (s *security) openAudit() error {
	o := &s.opts.audit
	var sink audit.Sink
	var err error
	switch o.log {
	case "none":
		return nil
	case "syslog":
		sink, err = audit.OpenSyslog("netmaster")
	case "":
		sink, err = audit.OpenFile(filepath.Join(s.opts.Dir, "audit.log"), int64(o.megabytes)<<20, o.keep)
	default:
		sink, err = audit.OpenFile(o.log, int64(o.megabytes)<<20, o.keep)
	}
	if err != nil {
		return err
	}
	s.audit = audit.New(sink, s.log.WithField("part", "audit"))
	return nil
}

// noteLogin is told of every login that has been tried.
func (s *security) noteLogin(l auth.Login) {
	if s.audit == nil {
		return
	}
	r := audit.Record{Who: "user " + l.User, How: l.How, Source: l.Source, Verb: "LOGIN", Path: auth.Prefix + "login/", Status: http.StatusOK, Reason: l.Failed}
	if l.Failed != "" {
		r.Status = http.StatusUnauthorized
	}
	s.audit.Add(r)
}

// gate is what stands before everything that this netmaster serves with TLS.
func (s *security) gate(rules *authz.Rules) func(http.Handler) http.Handler {
	var hosts []string
	for name := range strings.SplitSeq(s.opts.audit.hosts, ",") {
		if name = strings.TrimSpace(name); name != "" {
			hosts = append(hosts, name)
		}
	}
	guard := httpguard.Config{Hosts: append(hosts, "netmaster"), Names: func() []string { return certificateNames(s.creds) }}
	return func(next http.Handler) http.Handler {
		if s.audit == nil {
			return httpguard.Guard(guard, authz.Gate(rules, next))
		}
		return audit.Middleware(s.audit, rules, httpguard.Guard(guard, authz.Gate(rules, audit.Serve(s.audit, next))))
	}
}

// certificateNames are the DNS names of a certificate, which is the user's own or netmaster's.
func certificateNames(c *pki.Credentials) []string {
	if leaf := c.Leaf(); leaf != nil {
		return leaf.DNSNames
	}
	return nil
}

// note puts what a handler answers into the audit log.
func (s *security) note(rules *authz.Rules) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if s.audit == nil {
			return next
		}
		return audit.Middleware(s.audit, rules, next)
	}
}

// sealer seals the secrets of a purpose; it is not nil but in mode off.
func (s *security) sealer(purpose string) *seal.Sealer {
	return seal.New(purpose, func() []seal.Key { return s.ca.Keys() })
}
