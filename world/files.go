package world

import (
	"encoding/json"
	"iter"
)

// Files are the files that the params of a plan may name. Names are those of the plan
// file: relative to its folder, with slashes. Those of a plan file are also a RowReader, a FolderLister and a
// journal.Opener; those of a test need not be.
type Files interface {
	// Match lists the files that a pattern such as talks/actors/*.yaml matches, in order.
	Match(pattern string) []string
	// Text returns the whole of a file, which must be UTF-8 text.
	Text(name string) (string, error)
	// YAML decodes a file into the struct that v points to, as strictly as params are: a
	// key that the struct does not have and a value of another type are errors. Fields are
	// described by the tags that params have: json, doc, oneof. The Document is nil only
	// where the file could not be read as YAML at all.
	YAML(name string, v any) (Document, error)
}

// RowReader reads data sets.
type RowReader interface {
	// Rows returns the rows of a json, jsonl, yaml or parquet file, each as JSON, one after the other. It ends with the
	// first error.
	Rows(name string) iter.Seq2[json.RawMessage, error]
}

// FolderLister lists folders, for errors that say what was meant.
type FolderLister interface {
	// Folders returns the names of the folders in a folder.
	Folders(in string) []string
}

// Document is a file that was decoded, for what its keys mean together.
type Document interface {
	// Place says where a key such as metrics[2].range stands, or would: file:line:column: key.
	Place(key string) string
	// Fault returns an error about the value of a key. It names the place and shows the line.
	Fault(key, format string, args ...any) error
}
