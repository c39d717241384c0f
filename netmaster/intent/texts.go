package intent

// texts lets records share texts that many of them have: names of tenants, networks, groups
// and hosts. As records are decoded, each has a copy of its own. The zero value is ready to
// use. Not safe for concurrent use.
type texts struct{ known map[string]string }

// Bounds of texts: how many are remembered, and of how many bytes at most. When there are more
// they are forgotten, and later records share with each other only.
const (
	maxTexts = 1 << 16
	maxText  = 64
)

// ownKey makes a record that names its own key share that text.
func ownKey(key string, name *string) {
	if *name == key {
		*name = key
	}
}

// share replaces texts by equal ones that other records have.
func (t *texts) share(all ...*string) {
	for _, s := range all {
		if n := len(*s); n == 0 || n > maxText {
			continue
		}
		if known, ok := t.known[*s]; ok {
			*s = known
			continue
		}
		if t.known == nil || len(t.known) == maxTexts {
			t.known = map[string]string{}
		}
		t.known[*s] = *s
	}
}
