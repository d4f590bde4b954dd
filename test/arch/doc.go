// Package arch holds no code, only tests: of what the whole project promises about itself. Imports go down the districts,
// worlds use what a stranger's module can import, no package has hidden state, every package has one doc comment, and the
// documents speak of files and links that exist.
//
// A rule has few exceptions; each is listed by name with its reason in exceptions_test.go. No rule counts lines, files or
// packages: such a rule was kept by making more of them.
//
// It is not for what a linter checks already.
package arch
