// Package cni holds what Contiv's CNI plugins have in common, whatever they and the
// agent say to each other.
package cni
