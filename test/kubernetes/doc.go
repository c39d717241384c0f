// Package kubernetes tests Contiv as the network of a real cluster of Kubernetes, in a
// lab. Its tests need the programs that scripts/kubernetes builds, and are compiled with
// the build tag kubernetes only: make test-k8s runs them, make test does when the
// programs are there.
package kubernetes
