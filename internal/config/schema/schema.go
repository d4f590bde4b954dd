// Package schema describes what a document may contain: shapes of values that check documents, apply overrides to them,
// and make a JSON Schema.
//
// What it promises: one tree of shapes decides all three, so they always agree. It reports every error of a document,
// with its position, what is allowed, and what was probably meant.
//
// It does not know plans: package config has their table of keys.
package schema
