// Package cniclient is the inside of the CNI binaries: it reads what the runtime says
// (environment, CNI_ARGS, network configuration), asks the agent, and answers in the
// runtime's version of the CNI specification.
package cniclient
