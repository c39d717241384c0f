package consul

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/utils/errs"
)

// ReadRules are the rules of an ACL policy that lets its tokens read some prefixes, and ask
// how far the store is, and nothing else: no write, no session.
func ReadRules(prefixes []string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "key %q { policy = \"read\" }\n", probe)
	for _, prefix := range prefixes {
		name, err := wire(prefix)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "key_prefix %q { policy = \"read\" }\n", name)
	}
	return out.String(), nil
}

// GrantRead makes an ACL policy that reads some prefixes and nothing else, or makes one of
// that name equal to that, and says what it does; dry only says it. The token needs acl:write.
func (s *Store) GrantRead(ctx context.Context, name string, prefixes []string, dry bool, say func(string)) error {
	rules, err := ReadRules(prefixes)
	if err != nil {
		return err
	}
	acl, q, w := s.clients[s.current.Load()].ACL(), (&api.QueryOptions{}).WithContext(ctx), (&api.WriteOptions{}).WithContext(ctx)
	have, _, err := acl.PolicyReadByName(name, q)
	if err != nil {
		return s.wrap(err, "read ACL policy "+name)
	}
	const description = "what agents of Contiv read"
	switch {
	case have != nil && have.Rules == rules:
		return nil
	case have != nil:
		say("change ACL policy " + name + " to:\n" + rules)
		have.Rules = rules
		if dry {
			return nil
		}
		_, _, err = acl.PolicyUpdate(have, w)
	default:
		say("create ACL policy " + name + ":\n" + rules)
		if dry {
			return nil
		}
		_, _, err = acl.PolicyCreate(&api.ACLPolicy{Name: name, Description: description, Rules: rules}, w)
	}
	if err != nil {
		return errs.New(kind(err), "%s: write ACL policy %s: %w", s.name, name, err)
	}
	return nil
}
