package contivmodel

import "github.com/contiv/netplugin/utils/errs"

// checker collects the first failure of a row of field checks. Each method does
// nothing once a check has failed, so that a kind's checks read as a table.
type checker struct{ err error }

func (c *checker) fail(field, what string) {
	if c.err == nil {
		c.err = errs.New(errs.Invalid, "%s %s", field, what)
	}
}

// limit checks the length of v in bytes.
func (c *checker) limit(field, v string, most int) {
	if len(v) > most {
		c.fail(field, "string too long")
	}
}

// format fails unless ok.
func (c *checker) format(field string, ok bool) {
	if !ok {
		c.fail(field, "string invalid format")
	}
}

// bound checks that n lies in [low, high].
func (c *checker) bound(field string, n, low, high int) {
	if n < low || n > high {
		c.fail(field, "Value Out of bound")
	}
}

// name wants a NAME of at most most bytes.
func (c *checker) name(field, v string, most int) {
	c.limit(field, v, most)
	c.format(field, IsName(v))
}

// optName wants a NAME of at most most bytes, or nothing.
func (c *checker) optName(field, v string, most int) {
	c.limit(field, v, most)
	c.format(field, v == "" || IsName(v))
}

// oneOf wants v to be one of the given words.
func (c *checker) oneOf(field, v string, words ...string) {
	for _, w := range words {
		if v == w {
			return
		}
	}
	c.format(field, false)
}

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
