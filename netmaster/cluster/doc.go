// Package cluster is what a netmaster knows of the agents without asking: which are
// registered, and what they report on port 9001. Every netmaster collects it, leader or
// not, so that a new leader has it at once. None of it is stored: it is the present state
// only.
package cluster
