package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// link finds what a document links to, [text](target).
	link = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)
	// quoted finds what a document or a message quotes as code.
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// treePath finds a quoted path of the tree.
	treePath = regexp.MustCompile(`^(?:(?:cmd|netmaster|netplugin|mgmtfn|state|drivers|objdb|contivmodel|utils|ofnet|libopenflow|ovsdb|test|scripts|install|docs)/[\w./-]*|Makefile|Vagrantfile|go\.mod)$`)
	// declaredFlag finds the flags that our commands declare.
	declaredFlag = regexp.MustCompile(`(?:[Nn]ame:\s*|[Aa]lias:\s*|Aliases:\s*\[\]string\{[^}]*|[Ff]lag(?:Set)?\(|\.(?:String|Bool|Int|Uint|Duration)(?:Var)?\((?:&[\w.]+, )?)"([a-z][a-z0-9-]+)"`)
	// namedFlag finds the flags that a text names.
	namedFlag = regexp.MustCompile(`(?:^|[\s(\["'/|=])--([a-z][a-z0-9-]*[a-z0-9])(?:[^a-z0-9-]|$)`)
	// ourCommand finds calls of our commands.
	ourCommand = regexp.MustCompile(`(?:^|[\s(/"])(netmaster|netplugin|netctl|contiv-lab|lab)\s`)
	// otherCommand finds calls of other commands, whose flags are not ours.
	otherCommand = regexp.MustCompile(`(?:^|[\s(/"$])(docker|dockerd|kubectl|kubeadm|kube-proxy|ovs-\w+|ovs-vswitchd|etcdctl|etcd|consul|mesos-\w+|ctr|iperf3|tcpdump|go|sed|curl|systemctl|nft|git|apt-get)\b`)
)

// foreignFlags are those of other programs that documents and messages name alone.
var foreignFlags = []string{"endpoint-mode", "internal", "ip", "ipam-opt", "ipv4", "mac-address", "pod-network-cidr", "monitor", "help"}

// checkNames returns the links, paths of the tree and flags of our commands that documents
// name and that do not exist, as file:line: text.
func checkNames(root string) ([]string, error) {
	flags, err := declaredFlags(root)
	if err != nil {
		return nil, err
	}
	findings, err := checkMessageFlags(root, flags)
	if err != nil {
		return nil, err
	}
	err = eachDocument(root, func(rel string, lines []string) {
		for i, line := range lines {
			for _, text := range missing(root, rel, line, flags) {
				findings = append(findings, fmt.Sprintf("%s:%d: there is no %s", rel, i+1, text))
			}
		}
	})
	return findings, err
}

// checkMessageFlags returns the flags that messages of our commands and packages name and
// that do not exist.
func checkMessageFlags(root string, flags []string) (findings []string, err error) {
	err = eachGoFile(root, func(name, rel string) error {
		top, _, _ := strings.Cut(rel, "/")
		if slices.Contains(everywhere, top) {
			return nil
		}
		texts, err := parseTexts(name)
		if err != nil {
			return err
		}
		texts.eachMessage(func(line int, text string) {
			for _, m := range namedFlag.FindAllStringSubmatch(text, -1) {
				if otherCommand.FindString(text) == "" && !slices.Contains(flags, m[1]) && !slices.Contains(foreignFlags, m[1]) {
					findings = append(findings, fmt.Sprintf("%s:%d: there is no flag --%s", rel, line, m[1]))
				}
			}
		})
		return nil
	})
	return findings, err
}

// missing returns what a line of the document rel names and does not exist.
func missing(root, rel, line string, flags []string) (names []string) {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	for _, m := range link.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(m[1], "://") && !exists(path.Join(path.Dir(rel), m[1])) {
			names = append(names, m[1])
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		if treePath.MatchString(m[1]) && !exists(m[1]) {
			names = append(names, m[1])
		}
	}
	for _, text := range calls(line) {
		for _, m := range namedFlag.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(flags, m[1]) && !slices.Contains(foreignFlags, m[1]) {
				names = append(names, "flag --"+m[1])
			}
		}
	}
	return names
}

// calls returns the parts of a line in which flags are those of our commands: an indented
// line from one of our commands on, and quotations that begin with a flag or call one of
// our commands; in either only up to a command of others.
func calls(line string) (texts []string) {
	ours := func(text string) {
		if at := otherCommand.FindStringIndex(text); at != nil {
			text = text[:at[0]]
		}
		if at := ourCommand.FindStringIndex(text); at != nil {
			texts = append(texts, text[at[0]:])
		} else if strings.HasPrefix(text, "--") {
			texts = append(texts, text)
		}
	}
	if strings.HasPrefix(line, "    ") {
		ours(line)
		return texts
	}
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		ours(m[1])
	}
	return texts
}

// declaredFlags returns the names of all flags that commands of the tree declare.
func declaredFlags(root string) (flags []string, err error) {
	err = eachGoFile(root, func(name, _ string) error {
		text, err := os.ReadFile(name)
		for _, m := range declaredFlag.FindAllSubmatch(text, -1) {
			flags = append(flags, string(m[1]))
		}
		return err
	})
	return flags, err
}

// eachDocument calls f for README.md and the documents below docs/, decisions excepted:
// they tell of the day they were made.
func eachDocument(root string, f func(rel string, lines []string)) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && rel != "." && rel != "docs" && !strings.HasPrefix(rel, "docs/"), rel == "docs/decisions":
			return filepath.SkipDir
		case !strings.HasSuffix(rel, ".md"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f(rel, strings.Split(string(text), "\n"))
		return nil
	})
}

// eachGoFile calls f with the name and the path in the module of every Go file that is no
// test and no test data.
func eachGoFile(root string, f func(name, rel string) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != root):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return f(name, filepath.ToSlash(rel))
	})
}
