// Package cluster is what a netmaster knows of the agents without asking: which are
// registered, and what they report on port 9001. Every netmaster collects it, leader or
// not, so that a new leader knows at once what the old one knew. None of it is stored:
// it is about who is alive now.
package cluster
