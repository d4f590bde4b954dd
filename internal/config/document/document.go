// Package document reads the text of plan files, and of files that they name, as YAML, and reports errors with their
// position and without secrets.
//
// What it promises: no text makes it panic, recurse or grow without bound, and no error shows what may be a secret.
//
// It does not know what a plan may contain: packages schema and config do.
package document
