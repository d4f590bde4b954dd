package world

import "parley/internal/near"

// Nearest returns the one of names that somebody probably meant who wrote name, or "": for
// what a kind says of params and files that hold a slip.
func Nearest(name string, names []string) string { return near.Name(name, names) }
