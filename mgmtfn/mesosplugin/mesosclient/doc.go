// Package mesosclient is the inside of the CNI binary netcontiv: it reads what the
// agent of Mesos says (environment, network configuration, and the file that its
// isolator leaves beside the namespace), asks Contiv's agent, and prints the answer.
package mesosclient
