// Package image makes the container image of Contiv without a container engine and
// without a registry: a root file system of the binaries, the few programs they call and
// the libraries of these, and around it the archive that docker load and ctr images
// import take. Command scripts/image is its user; tests make small images of their own
// with it.
package image
