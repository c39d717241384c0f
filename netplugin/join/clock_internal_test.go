package join

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// TestClock: ten minutes are said once, in each direction; five are not.
func TestClock(t *testing.T) {
	there := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	h := http.Header{"Date": {there.Format(http.TimeFormat)}}
	for drift, want := range map[time.Duration]int{10 * time.Minute: 1, -10 * time.Minute: 1, 4 * time.Minute: 0, 0: 0} {
		var said bytes.Buffer
		log := logrus.New()
		log.SetOutput(&said)
		c := clock{log: log, now: func() time.Time { return there.Add(drift) }}
		for range 3 {
			c.compare("m", h)
		}
		c.compare("m", http.Header{"Date": {"yesterday"}})
		if n := strings.Count(said.String(), "differs from that of netmaster"); n != want {
			t.Errorf("difference %s: said %d times, expected %d", drift, n, want)
		}
		if want == 1 && !strings.Contains(said.String(), drift.String()) {
			t.Errorf("the log does not say %s: %s", drift, said.String())
		}
	}
}
