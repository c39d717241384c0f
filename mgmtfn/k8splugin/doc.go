// Package k8splugin attaches pods. The binary contivk8s, which a container runtime
// executes, passes each call on over a unix socket; the Server here puts it to an
// Attacher of mgmtfn/attachment and answers in the words of cniapi.
package k8splugin
