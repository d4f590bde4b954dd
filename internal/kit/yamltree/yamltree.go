// Package yamltree holds YAML and JSON documents as trees whose nodes know their positions, with aliases and merges
// followed.
//
// What it promises: building a tree stays within limits, however aliases multiply, and reports every problem with its
// position.
//
// It does not parse YAML (package files does) and does not know what a document may contain.
package yamltree
