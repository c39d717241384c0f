package bgp

import (
	"context"
	"log/slog"

	"github.com/sirupsen/logrus"
)

// handler passes the library's warnings to the speaker's log.
type handler struct{ log logrus.FieldLogger }

func (h handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	log := h.log
	r.Attrs(func(a slog.Attr) bool {
		log = log.WithField(a.Key, a.Value.String())
		return true
	})
	log.Warn(r.Message)
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.log = h.log.WithField(a.Key, a.Value.String())
	}
	return h
}

func (h handler) WithGroup(string) slog.Handler { return h }
