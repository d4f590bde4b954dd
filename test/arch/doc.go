// Package arch holds no code, only tests: of what the whole project promises about
// itself. Imports go down the layers that ARCHITECTURE.md lists, every package is
// named there and has one doc comment, sizes and names follow the house rules, and
// the documents speak of files, links and verbs that exist.
//
// A rule has few exceptions; each is listed by name with its reason in exceptions_test.go.
//
// It is not for what a linter checks already.
package arch
