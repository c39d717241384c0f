package main

import (
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netplugin/nameserver"
	"github.com/contiv/netplugin/utils/cliconf"
)

// nameOptions say whether and how containers are told each other's addresses.
type nameOptions struct {
	dns, domain, resolvConf string
	ttl, rate               int
}

func (o *nameOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "dns", Value: "auto", Destination: &o.dns, Sources: env.Var("DNS"),
			Usage: "answer DNS queries of containers: on, off, or auto (off with Kubernetes)",
		},
		&cli.StringFlag{
			Name: "dns-domain", Value: "contiv.local", Destination: &o.domain, Sources: env.Var("DNS_DOMAIN"),
			Usage: "`domain` of the names of containers, groups and services, which also resolve without it",
		},
		&cli.IntFlag{
			Name: "dns-ttl", Value: 5, Destination: &o.ttl, Sources: env.Var("DNS_TTL"),
			Usage: "TTL of DNS answers in `seconds`",
		},
		&cli.IntFlag{
			Name: "dns-rate", Value: 1000, Destination: &o.rate, Sources: env.Var("DNS_RATE"),
			Usage: "DNS queries per second and container over UDP",
		},
		&cli.StringFlag{
			Name: "resolv-conf", Value: "/etc/resolv.conf", Destination: &o.resolvConf, Sources: env.Var("RESOLV_CONF"),
			Usage: "`file` with the resolvers for all other names",
		},
	}
}

func (o *nameOptions) validate() error {
	if err := cliconf.OneOf("--dns", &o.dns, "auto", "on", "off"); err != nil {
		return err
	}
	const day = 24 * 60 * 60
	if o.ttl < 0 || o.ttl > day {
		return cliconf.Usagef("--dns-ttl %d: expected 0 to %d", o.ttl, day)
	}
	const most = 1 << 20
	if o.rate < 1 || o.rate > most {
		return cliconf.Usagef("--dns-rate %d: expected 1 to %d", o.rate, most)
	}
	if strings.Trim(o.domain, ".") == "" {
		return cliconf.Usagef("--dns-domain %q: expected a domain", o.domain)
	}
	return nil
}

// server makes the name server, or nil when there is to be none. In Kubernetes names
// are the business of the cluster's DNS, whose answers ours would shadow.
func (o *nameOptions) server(mode string, log logrus.FieldLogger) (*nameserver.Server, error) {
	if o.dns == "off" || o.dns == "auto" && mode == "kubernetes" {
		return nil, nil
	}
	return nameserver.New(nameserver.Config{Domain: o.domain, TTL: uint32(o.ttl), ResolvConf: o.resolvConf, Log: log})
}
