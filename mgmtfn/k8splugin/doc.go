// Package k8splugin attaches pods. The binary contivk8s, which a container runtime
// executes, forwards each call over a unix socket; the Server here passes it to an
// Attacher of mgmtfn/attachment and answers with the types of cniapi.
package k8splugin
