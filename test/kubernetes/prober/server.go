package prober

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Build builds the program contiv-prober, which needs nothing but a kernel, at a path.
func Build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/contiv/netplugin/test/kubernetes/prober/contiv-prober")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the prober: %w: %s", err, out)
	}
	return nil
}

// Command is the command line of a Server: it listens on ports under a name, and at a
// Unix socket for what it is to do. From its first moment on it asks the first target,
// if there is one.
func Command(program, name, socket string, ports []int, first ...Target) []string {
	var list []string
	for _, p := range ports {
		list = append(list, strconv.Itoa(p))
	}
	args := []string{program, name, socket, strings.Join(list, ",")}
	for _, t := range first {
		args = append(args, t.Proto, t.To.String())
	}
	return args
}

// Main is a Server with the arguments of Command after its program. It returns when it
// cannot go on, and why.
func Main(args []string) error {
	if len(args) != 3 && len(args) != 5 {
		return fmt.Errorf("arguments %q: expected NAME SOCKET PORTS [PROTOCOL ADDRESS]", args)
	}
	s := &Server{name: args[0], streams: map[int]*stream{}, first: make(chan string, 1)}
	if len(args) == 5 {
		to, err := netip.ParseAddrPort(args[4])
		if err != nil {
			return err
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), firstPatience)
			defer cancel()
			s.first <- ask(ctx, []Target{{args[3], to}})[0]
		}()
	}
	var ports []int
	for p := range strings.SplitSeq(args[2], ",") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return fmt.Errorf("port %q: %w", p, err)
		}
		ports = append(ports, n)
	}
	return s.serve(args[1], ports)
}

// firstPatience is how long the first target may take to answer.
const firstPatience = 2 * time.Second

// Server is what is in a pod. Its exported methods are those that a Client calls.
type Server struct {
	name  string
	first chan string // what the first target has answered; read by who asks first

	mu      sync.Mutex
	streams map[int]*stream
}

func (s *Server) serve(socket string, ports []int) error {
	failed := make(chan error, 1+2*len(ports))
	for _, port := range ports {
		address := ":" + strconv.Itoa(port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		defer l.Close()
		p, err := listenUDP(port)
		if err != nil {
			return err
		}
		defer p.Close()
		go func() { failed <- s.answerTCP(l) }()
		go func() { failed <- s.answerUDP(p) }()
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) { // of a container before
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer l.Close()
	r := rpc.NewServer()
	if err := r.Register(s); err != nil {
		return err
	}
	go func() { r.Accept(l); failed <- fmt.Errorf("nobody can be served at %s any more", socket) }()
	return <-failed
}

// answerTCP tells the name and sends back what comes.
func (s *Server) answerTCP(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if _, err := fmt.Fprintln(conn, s.name); err == nil {
				_, _ = io.Copy(conn, conn)
			}
		}()
	}
}

// Question is many targets, and how long they may take.
type Question struct {
	Targets  []Target
	Patience time.Duration
}

// Ask asks all targets at once.
func (s *Server) Ask(q Question, names *[]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), q.Patience)
	defer cancel()
	*names = ask(ctx, q.Targets)
	return nil
}

// First is the answer of the first target.
func (s *Server) First(_ struct{}, name *string) error {
	*name = <-s.first
	return nil
}

// Opening is a connection to be opened.
type Opening struct {
	To       netip.AddrPort
	Patience time.Duration
}

// Open opens a connection and returns its number.
func (s *Server) Open(o Opening, number *int) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.Patience)
	defer cancel()
	opened, err := openStream(ctx, o.To)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*number = len(s.streams)
	s.streams[*number] = opened
	return nil
}

// Word is something to be sent on an open connection.
type Word struct {
	Stream   int
	Word     string // other than those before
	Patience time.Duration
}

// Echo sends a word and tells whether it came back.
func (s *Server) Echo(w Word, back *bool) error {
	s.mu.Lock()
	on, ok := s.streams[w.Stream]
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("connection %d was never opened", w.Stream)
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience)
	defer cancel()
	*back = on.echo(ctx, w.Word)
	return nil
}
