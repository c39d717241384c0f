package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// GrantRead makes a role that reads some prefixes and nothing else, and a user without a
// password that has it: whoever shows a certificate with that common name. It does only what
// is not so yet, takes rights to anything else away, and says what it does; dry only says it.
// The client's user must be root.
func (s *Store) GrantRead(ctx context.Context, name string, prefixes []string, dry bool, say func(string)) error {
	have, missing, err := s.role(ctx, name)
	if err != nil {
		return s.wrap(err, "read role "+name)
	}
	do := func(what string, f func() error) error {
		say(what)
		if dry {
			return nil
		}
		if err := f(); err != nil {
			return s.wrap(err, what)
		}
		return nil
	}
	if missing {
		if err := do("create role "+name, func() error { _, err := s.c.RoleAdd(ctx, name); return err }); err != nil {
			return err
		}
	}
	for _, p := range have {
		if isRead(p, prefixes) {
			continue
		}
		what := fmt.Sprintf("take the right to %q from role %s", p.Key, name)
		if err := do(what, func() error {
			_, err := s.c.RoleRevokePermission(ctx, name, string(p.Key), string(p.RangeEnd))
			return err
		}); err != nil {
			return err
		}
	}
	for _, prefix := range prefixes {
		if slices.ContainsFunc(have, func(p *authpb.Permission) bool { return isRead(p, []string{prefix}) }) {
			continue
		}
		if err := do("let role "+name+" read "+prefix, func() error {
			_, err := s.c.RoleGrantPermission(ctx, name, prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead))
			return err
		}); err != nil {
			return err
		}
	}
	return s.grantUser(ctx, name, do)
}

// grantUser makes the user, and gives it the role of the same name.
func (s *Store) grantUser(ctx context.Context, name string, do func(string, func() error) error) error {
	user, err := s.c.UserGet(ctx, name)
	if errors.Is(err, rpctypes.ErrUserNotFound) {
		if err = do("create user "+name+" without a password", func() error {
			_, err := s.c.UserAddWithOptions(ctx, name, "", &clientv3.UserAddOptions{NoPassword: true})
			return err
		}); err != nil {
			return err
		}
	} else if err != nil {
		return s.wrap(err, "read user "+name)
	}
	if user != nil && slices.Contains(user.Roles, name) {
		return nil
	}
	return do("give role "+name+" to user "+name, func() error { _, err := s.c.UserGrantRole(ctx, name, name); return err })
}

func (s *Store) role(ctx context.Context, name string) (have []*authpb.Permission, missing bool, err error) {
	resp, err := s.c.RoleGet(ctx, name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return resp.Perm, false, nil
}

// isRead reports whether a permission is to read one of the prefixes, exactly.
func isRead(p *authpb.Permission, prefixes []string) bool {
	return p.PermType == clientv3.PermRead && slices.ContainsFunc(prefixes, func(prefix string) bool {
		return string(p.Key) == prefix && string(p.RangeEnd) == clientv3.GetPrefixRangeEnd(prefix)
	})
}
