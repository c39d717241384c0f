package systemtests

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// cluster is a lab with the words of a test.
type cluster struct {
	*lab.Lab
	t *testing.T
}

func up(t *testing.T, c lab.Config) cluster {
	t.Helper()
	return cluster{labtest.Up(t, c), t}
}

// netctl runs a command that must succeed.
func (c cluster) netctl(args ...string) string {
	c.t.Helper()
	out, err := c.NetctlOutput(c.t.Context(), args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// datapath is the name of the hosts' datapath for ovs-appctl dpctl.
func (c cluster) datapath() string {
	return c.Config().Datapath + "@ovs-" + c.Config().Datapath
}

// attach attaches a container; network may be "tenant/network".
func (c cluster) attach(host, name, network string) lab.Container {
	c.t.Helper()
	a := lab.Attachment{Host: host, Name: name, Network: network}
	if tenant, rest, found := strings.Cut(network, "/"); found {
		a.Tenant, a.Network = tenant, rest
	}
	container, err := c.Attach(c.t.Context(), a)
	if err != nil {
		c.t.Fatal(err)
	}
	return container
}

// run runs a shell script in a container or on a host; it must succeed.
func (c cluster) run(name, script string) string {
	c.t.Helper()
	out, err := c.Output(c.t.Context(), name, "sh", "-ec", script)
	if err != nil {
		c.t.Fatalf("in %s: %v\n%s", name, err, out)
	}
	return out
}

// reaches holds that three pings from a container are answered. The first may take
// as long as it takes to find the way.
func (c cluster) reaches(from, address string) {
	c.t.Helper()
	if out, err := c.Output(c.t.Context(), from, "ping", "-c", "3", "-i", "0.1", "-w", "60", address); err != nil {
		c.t.Errorf("%s does not reach %s: %v\n%s", from, address, err, out)
	}
}

// reachesNot holds that nothing answers.
func (c cluster) reachesNot(from, address string) {
	c.t.Helper()
	if out, err := c.Output(c.t.Context(), from, "ping", "-c", "3", "-i", "0.1", "-W", "1", address); err == nil {
		c.t.Errorf("%s reaches %s and should not:\n%s", from, address, out)
	}
}

// transfer sends 20 MB by TCP from one container to another, and by UDP some dozens of
// packets: so few that buffers hold them all, however slow the machine.
func (c cluster) transfer(from string, to lab.Container) {
	c.t.Helper()
	for _, address := range []string{to.IPv4, to.IPv6} {
		if address == "" {
			continue
		}
		for _, args := range [][]string{{"--bytes", "20M"}, {"--udp", "--bandwidth", "5M", "--bytes", "80K"}} {
			result := c.iperf(from, to.Name, address, args...)
			if result.Error != "" || result.End.SumReceived.Bytes == 0 && result.End.Sum.Packets == 0 {
				c.t.Errorf("transfer from %s to %s (%s) by %v: %+v", from, to.Name, address, args, result)
			}
			if lost := result.End.Sum.LostPercent; lost > 5 {
				c.t.Errorf("UDP from %s to %s (%s): %.1f %% lost", from, to.Name, address, lost)
			}
		}
	}
}

type iperfResult struct {
	Error string `json:"error"`
	End   struct {
		SumReceived struct {
			Bytes         float64 `json:"bytes"`
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
		Sum struct {
			Packets     int     `json:"packets"`
			LostPercent float64 `json:"lost_percent"`
		} `json:"sum"`
	} `json:"end"`
}

// iperf measures from one container to a server it starts in another.
func (c cluster) iperf(from, server, address string, args ...string) (result iperfResult) {
	c.t.Helper()
	defer c.serve(server)()
	out, err := c.Output(c.t.Context(), from, append([]string{"iperf3", "--json", "--connect-timeout", "60000", "--client", address}, args...)...)
	if jsonErr := json.Unmarshal([]byte(out), &result); jsonErr != nil {
		c.t.Fatalf("iperf3 from %s to %s: %v, %v\n%s", from, address, err, jsonErr, out)
	}
	return result
}

// background starts a command on a host or in a container. The function it returns ends it by
// a signal, if it has not ended; so does the end of the test.
func (c cluster) background(where string, std lab.Stdio, signal syscall.Signal, args ...string) (end func()) {
	c.t.Helper()
	cmd, err := c.Start(context.WithoutCancel(c.t.Context()), where, std, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
	})
	c.t.Cleanup(end)
	return end
}

// serve starts an iperf3 server for one test in a container and returns when it
// listens. The function it returns ends it.
func (c cluster) serve(name string) (end func()) {
	c.t.Helper()
	var out buffer
	end = c.background(name, lab.Stdio{Out: &out, Err: &out}, syscall.SIGKILL, "iperf3", "--server", "--one-off")
	if _, err := c.Output(c.t.Context(), name, "sh", "-c", "for i in $(seq 3000); do ss -Hltn 'sport = :5201' | grep -q . && exit 0; sleep 0.02; done; exit 1"); err != nil {
		end()
		c.t.Fatalf("iperf3 does not listen in %s: %s", name, out.String())
	}
	return end
}

// watch pings every ten milliseconds in the background. The function it returns ends
// that and holds that no packets were lost. A single one between answers is let pass, two
// of a stream at most: the userspace datapath drops one now and then for want of a
// processor, whatever the agent does. Flows that are missing for a moment cost more.
func (c cluster) watch(from, address string) (noneLost func()) {
	c.t.Helper()
	var out buffer
	end := c.background(from, lab.Stdio{Out: &out}, syscall.SIGINT, "ping", "-n", "-D", "-i", "0.01", address)
	return func() {
		c.t.Helper()
		// What is lost before this moment is missing among answers that come after it.
		time.Sleep(time.Second)
		end()
		answered, missing := unanswered(out.String())
		if len(missing) > 0 {
			c.t.Logf("ping from %s to %s: %d answered, not %v", from, address, answered, missing)
		}
		if answered < 10 || len(missing) > 2 || inARow(missing) {
			c.t.Errorf("ping from %s to %s: %d answered, not %v\n%s", from, address, answered, missing, tail(out.String()))
		}
	}
}

var pingAnswer = regexp.MustCompile(`bytes from .* icmp_seq=(\d+)`)

// unanswered counts the answers in ping's output and lists the packets that have none
// although a later one has. ping must have sent less than 65,536.
func unanswered(out string) (answered int, missing []int) {
	seen, last := map[int]bool{}, 0
	for _, m := range pingAnswer.FindAllStringSubmatch(out, -1) {
		seq, err := strconv.Atoi(m[1])
		if err == nil {
			seen[seq], last = true, max(last, seq)
		}
	}
	for seq := 1; seq < last; seq++ {
		if !seen[seq] {
			missing = append(missing, seq)
		}
	}
	return len(seen), missing
}

// inARow reports whether two of the numbers follow each other.
func inARow(numbers []int) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] == numbers[i-1]+1 {
			return true
		}
	}
	return false
}

// tail is the last lines of an output.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// stream keeps a TCP connection busy. Its window is small: a burst that fills the
// switch's queues would lose packets of its own accord. The function it returns ends that and holds that
// the connection lived to the end.
func (c cluster) stream(from string, to lab.Container) (alive func()) {
	c.t.Helper()
	c.serve(to.Name)
	var out, errOut strings.Builder
	cmd, err := c.Start(context.WithoutCancel(c.t.Context()), from, lab.Stdio{Out: &out, Err: &errOut},
		"iperf3", "--client", to.IPv4, "--time", "3600", "--bandwidth", "4M", "--length", "1400", "--window", "16K", "--forceflush")
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() {
		c.t.Helper()
		select {
		case err := <-done:
			c.t.Errorf("TCP from %s to %s broke: %v\n%s%s", from, to.Name, err, out.String(), errOut.String())
			return
		default:
		}
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-done // iperf3 calls an interrupt an error
		if !strings.Contains(out.String(), "receiver") && !strings.Contains(out.String(), "sender") {
			c.t.Errorf("TCP from %s to %s gave no sum:\n%s%s", from, to.Name, out.String(), errOut.String())
		}
	}
}

var cookie = regexp.MustCompile(`cookie=0x[0-9a-f]+, `)

// flows are a bridge's flows, sorted, without the cookies, whose round changes.
func (c cluster) flows(host, bridge string) []string {
	c.t.Helper()
	out := c.run(host, "ovs-ofctl -O OpenFlow13 --no-stats dump-flows "+bridge)
	var all []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "actions=") {
			all = append(all, strings.TrimSpace(cookie.ReplaceAllString(line, "")))
		}
	}
	slices.Sort(all)
	return all
}

// ports are the switch's interfaces with the numbers that change when one is made
// again.
func (c cluster) ports(host string) []string {
	c.t.Helper()
	return strings.Split(c.run(host, "ovs-vsctl --format=csv --no-headings --columns=name,_uuid,ofport,ifindex list interface"), "\n")
}

// restart ends a daemon by a signal and waits until it is ready again.
func (c cluster) restart(host, daemon string, signal syscall.Signal) {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	if err := h.RestartDaemon(ctx, daemon, signal); err != nil {
		c.t.Fatal(err)
	}
}

// ready waits until a daemon says it is ready.
func (c cluster) ready(host, daemon string) {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	if err := h.AwaitReady(ctx, daemon); err != nil {
		c.t.Fatal(err)
	}
}
