package contivmodel

// IsName reports whether s is a NAME: labels of ASCII letters, digits and hyphens
// that begin and end with a letter or digit, joined by single dots.
func IsName(s string) bool {
	if s == "" {
		return false
	}
	last := byte('.')
	for i := range len(s) {
		ch := s[i]
		switch {
		case ch == '-' && last == '.', ch == '.' && !alnum(last):
			return false
		case ch != '-' && ch != '.' && !alnum(ch):
			return false
		}
		last = ch
	}
	return alnum(last)
}

func alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isIP4 and isIP6 report whether s is an address of the family.
func isIP4(s string) bool { _, ok := ParseIP4(s); return ok }

func isIP6(s string) bool { _, ok := ParseIP6(s); return ok }
