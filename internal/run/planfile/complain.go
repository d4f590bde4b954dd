package planfile

import (
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
)

// Complain reports a problem at a key, or at the nearest one that exists. It reports nothing if there
// is an error at that key or below it: the first is more specific.
func (c *Checker) Complain(p yamltree.Path, format string, args ...any) {
	if !c.Full() && !c.Reported(p) {
		c.Add(c.Position(p), p, format, args...)
	}
}

// ComplainOfKey reports a problem with a key, not with its value.
func (c *Checker) ComplainOfKey(p yamltree.Path, format string, args ...any) {
	if !c.Full() && !c.Reported(p) {
		c.Add(c.Tree.Find(p).Key, p, format, args...)
	}
}

// Position returns where a problem with the value of a key is shown: at the value if it is on one
// line, and at the key otherwise.
func (c *Checker) Position(p yamltree.Path) yamltree.Position {
	n := c.Tree.Find(p)
	if n.Form == yamltree.Mapping || n.Form == yamltree.List || n.Form == yamltree.Nothing {
		return n.Key
	}
	return n.At
}

// Where describes the place of a key, as plan.yaml:5:12: providers.lab. If c is nil because the plan has no file, it is the
// key alone.
func (c *Checker) Where(p yamltree.Path) string {
	if c == nil {
		return p.String()
	}
	return c.Place(c.Tree.Find(p).At, p)
}

// Reported reports whether there is an error at a key or below it, or the key is missing because it
// was misspelled.
func (c *Checker) Reported(p yamltree.Path) bool {
	key := p.String()
	if c.Meant[key] && !c.Tree.Has(p) {
		return true
	}
	return slices.ContainsFunc(c.Errs, func(e *Error) bool {
		return e.Key == key || strings.HasPrefix(e.Key, key+".") || strings.HasPrefix(e.Key, key+"[")
	})
}
