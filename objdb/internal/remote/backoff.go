package remote

import (
	"time"

	"github.com/contiv/netplugin/utils/retry"
)

// NewBackoff spaces the attempts at one request: from about 25 ms to a second at most.
func NewBackoff() *retry.Backoff { return retry.New(25*time.Millisecond, time.Second) }
