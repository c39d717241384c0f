// Package hostinit is process 1 of a lab host: it dresses the namespaces it was
// started in as a machine of its own, then starts, stops and reaps the host's
// daemons on request.
//
// The life of an init:
//
//  1. The lab starts it in new network, mount, pid, uts and ipc namespaces. It reads
//     its Config from standard input. If the lab dies first, the input ends early
//     and the init exits: nothing can be half started and forgotten.
//  2. It makes /run, /etc, /var, /opt, /proc, /sys and /dev/shm private, binds the
//     host's own directories over theirs, sets host name, sysctls and loopback.
//  3. It opens its control socket and writes "ready" to descriptor 3 (or what went
//     wrong, and exits).
//  4. It serves HTTP with JSON on the control socket, which lives in the host's
//     private /run and is reached from outside as /proc/<pid>/root/run/contiv-lab/init.sock:
//     a short path for any lab directory, gone with the host.
//
// Killing the init kills every process of the host, ends its mounts and removes its
// links; no clean-up code has to run for that.
package hostinit
