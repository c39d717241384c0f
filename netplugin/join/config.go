package join

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// Config says how to join.
type Config struct {
	// Dir is the TLS folder of this host.
	Dir string
	// Host is the label of this host.
	Host string
	// Masters returns the base URLs (https://HOST:PORT) of netmasters.
	Masters func() []string
	// TokenFile holds a join token; AccountFile a ServiceAccount token for the audience
	// "contiv". Both are read at each attempt, and may be missing or empty.
	TokenFile, AccountFile string
	// AuthorityFile holds the cluster's authorities in PEM, to believe netmasters that are
	// asked with a ServiceAccount token. Without it the first answer is believed.
	AuthorityFile string
	// Socket is the unix socket of a netmaster on this host; it may not exist.
	Socket string
	// Compare is about how often the host compares what it believes with netmasters; 0 means
	// a minute.
	Compare time.Duration
	// Waiting, if not nil, is told why there is no certificate yet.
	Waiting func(error)
	Log     logrus.FieldLogger
}

// token is a join token: CONTIV1.<SPKI hash>.<id>.<secret>.
type token struct{ hash, id, secret string }

const tokenPrefix = "CONTIV1"

// parseToken reads a join token. The error's kind is Invalid; it does not show the token.
func parseToken(text string) (token, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 4 || parts[0] != tokenPrefix || parts[2] == "" || parts[3] == "" {
		return token{}, errs.New(errs.Invalid, "join token: expected %s.HASH.ID.SECRET; make one with: netctl host token create", tokenPrefix)
	}
	if raw, err := hex.DecodeString(parts[1]); err != nil || len(raw) != 32 {
		return token{}, errs.New(errs.Invalid, "join token: the hash of the certificate authority is damaged; make one with: netctl host token create")
	}
	return token{hash: strings.ToLower(parts[1]), id: parts[2], secret: parts[3]}, nil
}

// readLine reads a small file; a file that does not exist or is not named is empty.
func readLine(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := pki.ReadFile(path)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}
