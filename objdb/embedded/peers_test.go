package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// askPeer asks a member's port as one that wants to join would.
func askPeer(address string, c *pki.Credentials) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	url := "http://" + address + "/members"
	if c != nil {
		transport.TLSClientConfig = pki.ClientConfig(c, pki.UnitMaster)
		url = "https://" + address + "/members"
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 3 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

// TestFromPlainToTLS: three members that talk plainly are restarted one after the other, and
// talk by mutual TLS in the end. Most of them are there at every moment: what is written is
// never refused.
func TestFromPlainToTLS(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		// The library leaves connections of a member that stops to their time-out of 5 s.
		eventually.True(t, "all connections between members have ended", func() bool { return goleak.Find(before) == nil })
	})
	c := newCluster(t)
	peers, clients := freePorts(t, 3), freePorts(t, 3)
	var list []string
	for i, p := range peers {
		list = append(list, fmt.Sprintf("m%d=http://%s", i, p))
	}
	members, configs := make([]*embedded.Server, 3), make([]embedded.Config, 3)
	var wg sync.WaitGroup
	for i := range members {
		configs[i] = embedded.Config{
			Dir: t.TempDir(), ListenClient: clients[i], ListenPeer: peers[i], InitialCluster: strings.Join(list, ","), NoSync: true,
			Credentials: c.member(t, pki.UnitMaster, fmt.Sprint("m", i)), AgentReads: agentReads,
		}
		wg.Go(func() {
			var err error
			if members[i], err = embedded.Start(t.Context(), configs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	defer func() {
		for _, m := range members {
			wg.Go(m.Close)
		}
		wg.Wait()
	}()
	if text, err := askPeer(peers[0], nil); err != nil || !strings.Contains(text, "peerURLs") {
		t.Errorf("an open member tells nobody anything: %q, %v", text, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := connect(t, etcd.Config{Endpoints: []string{"http://" + clients[0], "http://" + clients[1], "http://" + clients[2]}, Cluster: c.member(t, pki.UnitMaster, "writer"), PlainToo: true})
	var writer sync.WaitGroup
	longest := time.Duration(0)
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			began := time.Now()
			try, stop := context.WithTimeout(ctx, eventually.Scaled(30*time.Second))
			_, err := store.Commit(try, objdb.Txn{Then: []objdb.Op{objdb.Put("/c/state/n", []byte(fmt.Sprint(i)))}})
			stop()
			// A connection that closes under a write leaves its outcome unknown, which the
			// writer of the same value repeats: only time-outs say that there was no quorum.
			if err != nil && time.Since(began) > 20*time.Second && ctx.Err() == nil {
				t.Errorf("no quorum for %s: %v", time.Since(began), err)
			}
			longest = max(longest, time.Since(began))
			time.Sleep(5 * time.Millisecond)
		}
	})
	written := func() bool {
		try, stop := context.WithTimeout(ctx, eventually.Scaled(20*time.Second))
		defer stop()
		_, err := store.Commit(try, objdb.Txn{Then: []objdb.Op{objdb.Put("/c/state/m", nil)}})
		return err == nil
	}
	for _, mode := range []tlsport.Mode{tlsport.Accept, tlsport.Require} {
		for i := range members {
			members[i].Close()
			configs[i].Mode = mode
			var err error
			if members[i], err = embedded.Start(t.Context(), configs[i]); err != nil {
				t.Fatalf("m%d in mode %s: %v", i, mode, err)
			}
			eventually.True(t, fmt.Sprintf("writes succeed after m%d is in mode %s", i, mode), written)
		}
		eventually.True(t, "all members are reached by https in mode "+string(mode), func() bool {
			text, err := askPeer(peers[0], configs[1].Credentials)
			return err == nil && strings.Count(text, "https://") == 3 && strings.Count(text, `"http://`) == 3 // client URLs
		})
	}
	cancel()
	writer.Wait()
	t.Logf("the longest write took %s", longest)

	if text, err := askPeer(peers[0], nil); err == nil || !strings.Contains(err.Error(), "TLS only") {
		t.Errorf("a plain request: %q, %v; want to be told of TLS", text, err)
	}
	for name, stranger := range map[string]*pki.Credentials{"agent": c.member(t, pki.UnitAgent, "host1"), "nobody": nobody(t, c)} {
		if text, err := askPeer(peers[0], stranger); err == nil {
			t.Errorf("%s talks to a member: %s", name, text)
		}
	}
}

// TestSecureFromTheStart: a new cluster whose members require TLS is one from its first
// election on, whatever scheme the list has; https without TLS is refused.
func TestSecureFromTheStart(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		eventually.True(t, "all connections between members have ended", func() bool { return goleak.Find(before) == nil })
	})
	c := newCluster(t)
	peers, clients := freePorts(t, 3), freePorts(t, 3)
	list := fmt.Sprintf("m0=%s,m1=http://%s,m2=https://%s", peers[0], peers[1], peers[2])
	cfg := embedded.Config{Dir: t.TempDir(), ListenClient: clients[0], ListenPeer: peers[0], InitialCluster: list, NoSync: true}
	if err := cfg.Validate(); err != nil {
		t.Errorf("before it is known whether there is TLS: %v", err)
	}
	if _, err := embedded.Start(t.Context(), cfg); !errs.Is(err, errs.Invalid) {
		t.Errorf("https without TLS: %v, want an Invalid error", err)
	}
	cfg.Mode = tlsport.Require
	if _, err := embedded.Start(t.Context(), cfg); !errs.Is(err, errs.Invalid) {
		t.Errorf("TLS without a certificate: %v, want an Invalid error", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 3 {
		member := cfg
		member.Dir, member.ListenClient, member.ListenPeer = t.TempDir(), clients[i], peers[i]
		member.Credentials, member.AgentReads = c.member(t, pki.UnitMaster, fmt.Sprint("m", i)), agentReads
		wg.Go(func() {
			s, err := embedded.Start(t.Context(), member)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(s.Close)
		})
	}
	wg.Wait()
	if text, err := askPeer(peers[2], c.member(t, pki.UnitMaster, "m")); err != nil || strings.Count(text, "https://127.0.0.1") < 3 {
		t.Errorf("members: %s, %v", text, err)
	}
}

// nobody knows the cluster's roots and has no certificate.
func nobody(t testing.TB, c *cluster) *pki.Credentials {
	t.Helper()
	out := pki.NewCredentials()
	if err := out.SetRoots(c.roots); err != nil {
		t.Fatal(err)
	}
	return out
}
