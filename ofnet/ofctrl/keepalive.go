package ofctrl

import (
	"fmt"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
)

// keepAlive answers the switch's echo requests and sends its own when the switch is silent.
// It returns when the switch has been silent for too long or cannot be written to.
func (c *Conn) keepAlive() error {
	tick := time.NewTicker(c.cfg.EchoInterval)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-c.done:
			return ErrClosed
		case e := <-c.echoes:
			err = c.w.send(e.xid, &of.EchoReply{Data: e.data})
		case <-tick.C:
			silent := time.Since(time.Unix(0, c.lastRead.Load()))
			if silent >= c.cfg.EchoTimeout {
				return fmt.Errorf("no answer from the switch for %v", silent.Round(time.Millisecond))
			}
			if silent >= c.cfg.EchoInterval/2 {
				err = c.w.send(c.w.xids(1), &of.EchoRequest{})
			}
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}
