package world

import "parley/internal/kit/text"

// Nearest returns the one of names that was probably meant by name, or "", for errors about misspelled names.
func Nearest(name string, names []string) string { return text.Nearest(name, names) }
