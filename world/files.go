package world

// Files are the files that the params of a plan may name. Names are those of the plan
// file: relative to its folder, with slashes.
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

// Document is a file that was decoded, for what its keys mean together.
type Document interface {
	// Place says where a key such as metrics[2].range stands, or would: file:line:column: key.
	Place(key string) string
	// Fault returns an error about the value of a key. It names the place and shows the line.
	Fault(key, format string, args ...any) error
}
