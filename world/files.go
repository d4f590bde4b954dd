package world

// Files gives access to the files that params may name. Names are relative to the plan file's folder, with slashes.
// The Files of a plan file also implement RowReader and FolderLister; those of a test need not.
type Files interface {
	// Match lists the files that match a pattern such as talks/actors/*.yaml, in order.
	Match(pattern string) []string
	// Text returns the whole of a file, which must be UTF-8 text.
	Text(name string) (string, error)
	// YAML decodes a file into the struct that v points to, as strictly as params: an unknown key and a value of
	// another type are errors. Tags describe the fields as in params: json, doc, range, oneof. The Document is nil only if
	// the file is not YAML.
	YAML(name string, v any) (Document, error)
}

// Document is a decoded file, for errors about keys that do not fit together.
type Document interface {
	// Place returns the position of a key such as metrics[2].range, or of its mapping: file:line:column: key.
	Place(key string) string
	// Fault returns an error about the value of a key, with its position and its line.
	Fault(key, format string, args ...any) error
}
