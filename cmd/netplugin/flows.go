package main

import (
	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/netplugin/flowlog"
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
	}
}

func (o *flowOptions) validate() error {
	if err := cliconf.OneOf("--flow-log", &o.which, flowLogOff, flowLogPoliced, flowLogAll); err != nil {
		return err
	}
	if o.size < 1 || o.size > 4096 {
		return cliconf.Usagef("--flow-log-size %d: expected 1 to 4096 (MiB)", o.size)
	}
	return nil
}

// mode is what the switch prepares.
func (o *flowOptions) mode() ofnet.FlowLog {
	return map[string]ofnet.FlowLog{flowLogPoliced: ofnet.LogPoliced, flowLogAll: ofnet.LogAll}[o.which]
}

// log makes the flow log; nil if there is none.
func (o *flowOptions) log(host string, log logrus.FieldLogger) *flowlog.Log {
	if o.which == flowLogOff {
		return nil
	}
	return flowlog.New(flowlog.Config{Host: host, Size: o.size << 20, Log: log})
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
