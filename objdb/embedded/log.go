package embedded

import (
	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger makes a logger for the etcd library that writes into ours. Only errors
// pass: what etcd calls information is of interest to its own developers.
func zapLogger(log logrus.FieldLogger) *zap.Logger {
	if log == nil {
		return zap.NewNop()
	}
	return zap.New(&core{log: log.WithField("component", "store")})
}

// core is a zapcore.Core that ends in logrus.
type core struct{ log logrus.FieldLogger }

func (c *core) Enabled(l zapcore.Level) bool { return l >= zapcore.ErrorLevel }
func (c *core) Sync() error                  { return nil }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{log: c.log.WithFields(toFields(fields))}
}

func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write logs everything as a warning: whether an error of the store is one of ours is
// decided where its consequences are met.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.WithFields(toFields(fields)).Warn(e.Message)
	return nil
}

func toFields(fields []zapcore.Field) logrus.Fields {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return enc.Fields
}
