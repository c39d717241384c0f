package ofctrl

import (
	"sync"

	of "github.com/contiv/netplugin/libopenflow"
)

// maxPacketIns limits the packet-ins that wait for the handler.
const maxPacketIns = 1024

// eventQueue holds the switch's own messages until the handlers take them. Only packet-ins
// are limited: the others are few, and must not be lost.
type eventQueue struct {
	mu        sync.Mutex
	wake      sync.Cond
	queue     []of.Message
	packetIns int
	closed    bool
}

func (q *eventQueue) init() { q.wake.L = &q.mu }

// put appends a message. It returns false if it dropped it.
func (q *eventQueue) put(m of.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := m.(*of.PacketIn); ok {
		if q.packetIns >= maxPacketIns {
			return false
		}
		q.packetIns++
	}
	q.queue = append(q.queue, m)
	q.wake.Signal()
	return true
}

// take waits for messages and returns all that are queued; nil when the queue is closed.
func (q *eventQueue) take() []of.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) == 0 && !q.closed {
		q.wake.Wait()
	}
	if q.closed {
		return nil
	}
	all := q.queue
	q.queue, q.packetIns = nil, 0
	return all
}

func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// async queues a message of the switch's own for its handler.
func (c *Conn) async(m of.Message) {
	switch m.(type) {
	case *of.PacketIn:
		c.stats.packetIns.Add(1)
		if c.cfg.PacketIn == nil {
			return
		}
	case *of.PortStatus:
		if c.cfg.PortStatus == nil {
			return
		}
	case *of.FlowRemoved:
		if c.cfg.FlowRemoved == nil {
			return
		}
	default:
		return
	}
	if !c.events.put(m) {
		c.stats.dropped.Add(1)
	}
}

// dispatch runs the handlers until the connection ends.
func (c *Conn) dispatch() {
	for {
		all := c.events.take()
		if all == nil {
			return
		}
		for _, m := range all {
			select {
			case <-c.done:
				return
			default:
			}
			switch m := m.(type) {
			case *of.PacketIn:
				c.cfg.PacketIn(m)
			case *of.PortStatus:
				c.cfg.PortStatus(m)
			case *of.FlowRemoved:
				c.cfg.FlowRemoved(m)
			}
		}
	}
}
