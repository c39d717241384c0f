package cliconf

import (
	"fmt"
	"io"
	"log/syslog"
	"net/url"
	"time"

	"github.com/sirupsen/logrus"
	lsyslog "github.com/sirupsen/logrus/hooks/syslog"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/logtail"
)

// Log is the group of options about logging.
type Log struct {
	Level     string // DEBUG INFO WARN ERROR FATAL PANIC, any case
	JSON      bool
	Syslog    bool
	SyslogURL string // proto://host:port

	Tail *logtail.Tail // the last lines of the log that Open has made
}

// Flags returns the options; parsing fills l.
func (l *Log) Flags(env Env) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "log-level", Category: "logging", Value: "INFO", Destination: &l.Level,
			Sources: env.Var("LOG_LEVEL"), Usage: "DEBUG, INFO, WARN or ERROR",
		},
		&cli.BoolFlag{
			Name: "use-json-log", Aliases: []string{"json-log"}, Category: "logging", Destination: &l.JSON,
			Sources: env.Var("USE_JSON_LOG"), Usage: "write the log as JSON lines instead of text",
		},
		&cli.BoolFlag{
			Name: "use-syslog", Aliases: []string{"syslog"}, Category: "logging", Destination: &l.Syslog,
			Sources: env.Var("USE_SYSLOG"), Usage: "also send the log to syslog",
		},
		&cli.StringFlag{
			Name: "syslog-url", Category: "logging", Value: "udp://127.0.0.1:514", Destination: &l.SyslogURL,
			Sources: env.Var("SYSLOG_URL"), Usage: "syslog server, `proto://host:port`",
		},
	}
}

// Open makes the logger the options describe, writing to w. tag is the program's
// name, for syslog. The result of an invalid option is a UsageError.
func (l *Log) Open(tag string, w io.Writer) (*logrus.Logger, error) {
	level, err := logrus.ParseLevel(l.Level)
	if err != nil {
		return nil, Usagef("--log-level %q is unknown, expected DEBUG, INFO, WARN or ERROR", l.Level)
	}
	log := logrus.New()
	log.SetOutput(w)
	log.SetLevel(level)
	if l.JSON {
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.StampNano})
	}
	l.Tail = logtail.New(logtail.DefaultSize)
	log.AddHook(l.Tail)
	if l.Syslog {
		u, err := url.Parse(l.SyslogURL)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return nil, Usagef("--syslog-url %q is not proto://host:port", l.SyslogURL)
		}
		hook, err := lsyslog.NewSyslogHook(u.Scheme, u.Host, priority(level), tag)
		if err != nil {
			return nil, &UsageError{Err: fmt.Errorf("--syslog-url %q cannot be reached: %w", l.SyslogURL, err)}
		}
		log.AddHook(hook)
	}
	return log, nil
}

// priority is what a log level is called in syslog (RFC 5424 §6.2.1).
func priority(level logrus.Level) syslog.Priority {
	switch level {
	case logrus.PanicLevel, logrus.FatalLevel:
		return syslog.LOG_CRIT
	case logrus.ErrorLevel:
		return syslog.LOG_ERR
	case logrus.WarnLevel:
		return syslog.LOG_WARNING
	case logrus.InfoLevel:
		return syslog.LOG_INFO
	}
	return syslog.LOG_DEBUG
}
