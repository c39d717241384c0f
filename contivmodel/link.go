package contivmodel

// Link names another object. The zero Link is unset and written as {}.
type Link struct {
	Type string `json:"type,omitempty"` // type string of the target, e.g. "network"
	Key  string `json:"key,omitempty"`  // key of the target, e.g. "default:net1"
}

// LinkSet holds links by the key of their target.
type LinkSet map[string]Link

// NewLinkSet returns links to the objects of one type; none give a nil set, which is
// omitted when written.
func NewLinkSet(typ string, keys []string) LinkSet {
	if len(keys) == 0 {
		return nil
	}
	s := make(LinkSet, len(keys))
	for _, k := range keys {
		s[k] = Link{Type: typ, Key: k}
	}
	return s
}
