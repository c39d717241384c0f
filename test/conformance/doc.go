// Command conformance runs Kubernetes' own end-to-end tests of the network against Contiv: in
// a lab of three nodes without kube-proxy, with images made on this machine. What it runs is in
// suites.yaml, how it went in docs/conformance.md, which it writes.
package main
