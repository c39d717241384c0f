// Package mesosplugin attaches containers of Apache Mesos' own containerizer. The binary
// netcontiv, which the agent of Mesos executes, passes each call on over a unix socket;
// the Server here puts it to an Attacher of mgmtfn/attachment and answers as mesosapi
// says. Labels of a container say where it belongs.
package mesosplugin
