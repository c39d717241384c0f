package join

import (
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// maxDrift is how far clocks may differ before it is said.
const maxDrift = 5 * time.Minute

// clock compares the clock of this host with that of netmasters.
type clock struct {
	log logrus.FieldLogger
	now func() time.Time // nil: time.Now

	mu   sync.Mutex
	said bool
}

// compare warns, once per episode, when the clocks differ too much. It changes nothing: a
// certificate counts from an hour before it is made.
func (c *clock) compare(master string, h http.Header) {
	there, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	now := time.Now
	if c.now != nil {
		now = c.now
	}
	drift := now().Sub(there)
	c.mu.Lock()
	defer c.mu.Unlock()
	far := drift.Abs() > maxDrift
	if far && !c.said {
		c.log.WithField("netmaster", master).WithField("difference", drift.Round(time.Second).String()).
			Warn("the clock of this host differs from that of netmaster; certificates may expire too early or too late, check NTP")
	}
	c.said = far
}
