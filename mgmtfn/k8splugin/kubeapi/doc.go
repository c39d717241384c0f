// Package kubeapi reaches the API server of Kubernetes: where it is and who one is to
// it (Load), and lists of objects that are kept equal to its own (Client).
//
// The clients are made for the few kinds of object that an agent reads. The clientset
// of client-go knows every kind there is, and would cost each agent tens of megabytes.
package kubeapi
