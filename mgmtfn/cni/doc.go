// Package cni holds what Contiv's CNI plugins have in common, whatever they and the
// agent say to each other: how they reach it, the form of results and errors, codes,
// CNI_ARGS and the log.
package cni
