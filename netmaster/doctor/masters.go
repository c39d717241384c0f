package doctor

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/version"
)

// Master is a netmaster, and why it accepts no connections; empty: it does.
type Master struct {
	cluster.Master
	Err string
}

// masterWithin is how long a netmaster may take to accept a connection.
const masterWithin = time.Second

// askMasters finds out which of the registered netmasters accept connections.
func askMasters(ctx context.Context, list []cluster.Master) []Master {
	ctx, cancel := context.WithTimeout(ctx, masterWithin)
	defer cancel()
	all := make([]Master, len(list))
	var asking sync.WaitGroup
	for i, m := range list {
		all[i].Master = m
		if !m.Gone.IsZero() {
			continue
		}
		asking.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Address)
			if err != nil {
				all[i].Err = err.Error()
				return
			}
			conn.Close()
		})
	}
	asking.Wait()
	return all
}

// masters finds netmasters that have gone, cannot be reached, or have another version.
var masters = check{"netmasters", func(f *Facts) (out []doctorapi.Finding) {
	own := version.Get().Version
	for _, m := range f.Masters {
		object := "netmaster " + m.Address
		switch {
		case !m.Gone.IsZero():
			out = append(out, doctorapi.Finding{
				Code: "netmaster-gone", Severity: doctorapi.Warning, Object: object, Text: "it is not registered since " + m.Gone.UTC().Format(time.RFC3339),
				Do: "start it; if it has been removed for good, do nothing: it is forgotten after a day",
			})
		case m.Err != "":
			out = append(out, doctorapi.Finding{
				Code: "netmaster-unreachable", Severity: doctorapi.Error, Object: object, Text: "the leader does not reach it: " + m.Err,
				Do: "see journalctl -u netmaster there, and whether the leader reaches that port",
			})
		case m.Version != "" && m.Version != own:
			out = append(out, doctorapi.Finding{
				Code: "netmaster-version", Severity: doctorapi.Warning, Object: object, Text: fmt.Sprintf("it has version %s, the leader %s", m.Version, own),
				Do: "finish the upgrade: netmasters first, one after the other",
			})
		}
	}
	return out
}}
