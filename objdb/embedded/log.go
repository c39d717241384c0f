package embedded

import (
	"sync/atomic"

	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger writes what the etcd library has to say into our log. Only errors pass: what
// etcd calls information is of interest to its own developers.
type logger struct {
	log    logrus.FieldLogger
	closed *atomic.Bool // errors of a server that is being closed are none
}

func newLogger(log logrus.FieldLogger) *logger {
	l := &logger{log: log, closed: &atomic.Bool{}}
	if log != nil {
		l.log = log.WithField("component", "store")
	}
	return l
}

func (l *logger) zap() *zap.Logger {
	if l.log == nil {
		return zap.NewNop()
	}
	return zap.New(l)
}

// Enabled, With, Check, Write and Sync implement zapcore.Core.
func (l *logger) Enabled(level zapcore.Level) bool {
	return level >= zapcore.ErrorLevel && !l.closed.Load()
}

func (l *logger) With(fields []zapcore.Field) zapcore.Core {
	return &logger{log: l.log.WithFields(toFields(fields)), closed: l.closed}
}

func (l *logger) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return ce.AddCore(e, l)
	}
	return ce
}

// harmless is what etcd reports as an error on the first start of every member.
const harmless = "failed to update storage version"

// Write logs everything as a warning: whether an error of the store is one of ours is
// decided where its consequences are met.
func (l *logger) Write(e zapcore.Entry, fields []zapcore.Field) error {
	log := l.log.WithFields(toFields(fields))
	if e.Message == harmless {
		log.Debug(e.Message)
		return nil
	}
	log.Warn(e.Message)
	return nil
}

func (l *logger) Sync() error { return nil }

func toFields(fields []zapcore.Field) logrus.Fields {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return enc.Fields
}
