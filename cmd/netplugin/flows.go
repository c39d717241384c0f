package main

import (
	"net/netip"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/netplugin/flowlog"
	"github.com/contiv/netplugin/netplugin/flowlog/export"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/cliconf"
)

// Values of --flow-log.
const (
	flowLogOff     = "off"
	flowLogPoliced = "policed"
	flowLogAll     = "all"
)

// flowOptions say which connections are logged.
type flowOptions struct {
	which string
	size  int // MiB
	to    []string

	auditDir  string
	auditSize int // MiB
	auditKeep int
}

func (o *flowOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "flow-log", Value: flowLogPoliced, Destination: &o.which, Sources: env.Var("FLOW_LOG"),
			Usage: "connections to log with what allowed or denied them: off, policed (those that policies, services or the default route have tracked anyway) or all",
		},
		&cli.IntFlag{
			Name: "flow-log-size", Value: flowlog.DefaultSize >> 20, Destination: &o.size, Sources: env.Var("FLOW_LOG_SIZE"),
			Usage: "memory of the flow log in `MiB`; it keeps an hour at most",
		},
		&cli.StringSliceFlag{
			Name: "flow-export", Destination: &o.to, Sources: env.Var("FLOW_EXPORT"),
			Usage: "`collector` of the flow log: ipfix://host:port, otlp+http://host:port/v1/logs or file:/path (repeatable)",
		},
		&cli.StringFlag{
			Name: "audit-dir", Value: "/var/log/contiv", Destination: &o.auditDir, TakesFile: true, Sources: env.Var("AUDIT_DIR"),
			Usage: "`directory` of the audit file, " + export.AuditFile + ", which gets the connections that rules of policies with audit decide",
		},
		&cli.IntFlag{
			Name: "audit-size", Value: 16, Destination: &o.auditSize, Sources: env.Var("AUDIT_SIZE"),
			Usage: "`MiB` at which the audit file is rotated",
		},
		&cli.IntFlag{
			Name: "audit-keep", Value: 4, Destination: &o.auditKeep, Sources: env.Var("AUDIT_KEEP"),
			Usage: "how many rotated audit files are kept",
		},
	}
}

func (o *flowOptions) validate() error {
	if err := cliconf.OneOf("--flow-log", &o.which, flowLogOff, flowLogPoliced, flowLogAll); err != nil {
		return err
	}
	if o.size < 1 || o.size > 4096 {
		return cliconf.Usagef("--flow-log-size %d: expected 1 to 4096 (MiB)", o.size)
	}
	if len(o.to) > 0 && o.which == flowLogOff {
		return cliconf.Usagef("--flow-export needs a log: --flow-log is off")
	}
	if !filepath.IsAbs(o.auditDir) {
		return cliconf.Usagef("--audit-dir %q: expected an absolute path", o.auditDir)
	}
	if o.auditSize < 1 || o.auditSize > 1<<20 || o.auditKeep < 1 || o.auditKeep > 1000 {
		return cliconf.Usagef("--audit-size and --audit-keep: expected at least 1 MiB and 1 file")
	}
	if _, err := o.exporters("", nil); err != nil {
		return cliconf.Usagef("--flow-export: %w", err)
	}
	return nil
}

// exporters are those of the collectors.
func (o *flowOptions) exporters(host string, log logrus.FieldLogger) (export.Exporters, error) {
	var all export.Exporters
	for _, spec := range o.to {
		e, err := export.New(spec, host, log)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// audit is the exporter to the audit file; nil if there is no log.
func (o *flowOptions) audit(host string, log logrus.FieldLogger) *export.Exporter {
	if o.which == flowLogOff {
		return nil
	}
	return export.NewAudit(o.auditDir, host, int64(o.auditSize)<<20, o.auditKeep, log)
}

// mode is what the switch prepares.
func (o *flowOptions) mode() ofnet.FlowLog {
	return map[string]ofnet.FlowLog{flowLogPoliced: ofnet.LogPoliced, flowLogAll: ofnet.LogAll}[o.which]
}

// log makes the flow log; nil if there is none.
func (o *flowOptions) log(host string, podAt func(tenant string, a netip.Addr) string, log logrus.FieldLogger) *flowlog.Log {
	if o.which == flowLogOff {
		return nil
	}
	return flowlog.New(flowlog.Config{Host: host, Size: o.size << 20, PodAt: podAt, Log: log})
}

// observedDriver tells the flow log what is declared, so that it knows names.
type observedDriver struct {
	*ovsd.Driver
	log *flowlog.Log // nil: nobody
}

// Apply implements drivers.Driver.
func (d observedDriver) Apply(o drivers.Object) {
	if d.log != nil {
		d.log.Declare(o)
	}
	d.Driver.Apply(o)
}

// Delete implements drivers.Driver.
func (d observedDriver) Delete(k drivers.Kind, id string) {
	if d.log != nil {
		d.log.Withdraw(k, id)
	}
	d.Driver.Delete(k, id)
}
