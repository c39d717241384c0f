package export

import (
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/flowapi"
)

// AuditFile is the name of the audit file.
const AuditFile = "connections.log"

// NewAudit makes an exporter to the audit file in a directory, of at most size bytes, of which
// as many older ones are kept: what the rules of policies with audit decided. Nothing is
// opened or written before there is something.
func NewAudit(dir, host string, size int64, keep int, log logrus.FieldLogger) *Exporter {
	path := filepath.Join(dir, AuditFile)
	return &Exporter{
		name: path, host: host, log: log, audit: true, what: flowapi.Filter{Follow: true, Audited: true},
		sink: &file{path: path, most: size, keep: keep, dir: true},
	}
}
