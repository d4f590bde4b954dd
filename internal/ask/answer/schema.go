// Package answer reads structured answers: text of a model that should be a JSON value of a given JSON Schema.
//
// Strict JSON that follows the schema is returned unchanged. Everything else goes through one tolerant parser (code
// fences, prose around the value, thoughts, trailing commas, comments, Python's words, …), and the result must follow
// the schema too. Otherwise the error is an *Error with findings that help a model to repair its answer.
//
// What it promises: nothing is made up, so a truncated answer is reported as such, and a number is read from a string
// only if nothing is lost. Read returns its own results as Native. Time and memory grow linearly with the length of
// the text, however hostile it is, and nothing panics. The same text gives the same value and the same findings.
//
// It does not ask again (package dispatch does), and it loads no schema from elsewhere.
package answer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/kit/text"
	"parley/llm"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled   *jsonschema.Schema
	scalar     bool     // only strings, numbers, booleans or null follow it
	properties []string // the properties that the schema names for the whole answer
}

// here is the address of a schema for the compiler. Nothing can be loaded from it.
const here = "answer:///schema"

// Compile compiles a JSON Schema. It refuses references to other documents, and what llm.CheckSchema refuses.
func Compile(schema json.RawMessage) (s *Schema, err error) {
	if err := llm.CheckSchema(schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("schema: not JSON: %w", err)
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, fmt.Errorf("schema: want a JSON Schema, which is an object, not %s", describe(doc))
	}
	if hasUnusableNumber(doc) {
		return nil, fmt.Errorf("schema: a number in it is far out of range")
	}
	// The compiler is a library, and a schema may be from a plan file: a bug in the library must not end the program.
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("schema: cannot be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(here, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := c.Compile(here)
	if err != nil {
		return nil, fmt.Errorf("schema: %s", text.Excerpt(strings.ReplaceAll(err.Error(), here, "schema"), 600))
	}
	root, _ := doc.(map[string]any)
	props, _ := root["properties"].(map[string]any)
	return &Schema{compiled: compiled, scalar: isScalar(root), properties: slices.Sorted(maps.Keys(props))}, nil
}

// noLoader refuses to load anything.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not followed: %s", url)
}

// isScalar reports whether only a value without others in it can follow a schema.
func isScalar(root map[string]any) bool {
	if v, ok := root["const"]; ok {
		return !isContainer(v)
	}
	if vs, ok := root["enum"].([]any); ok {
		return !slices.ContainsFunc(vs, isContainer)
	}
	switch t := root["type"].(type) {
	case string:
		return t != "object" && t != "array"
	case []any:
		return !slices.Contains(t, any("object")) && !slices.Contains(t, any("array"))
	}
	return false
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// Compiler compiles schemas and keeps them, up to a limit: then it begins again. The zero value is ready to use. It is safe for concurrent
// use.
type Compiler struct {
	mu    sync.Mutex
	kept  map[[32]byte]*Schema
	bytes int
}

// A Compiler keeps at most this many schemas and bytes.
const (
	maxKept  = 512
	maxBytes = 16 << 20
)

// Compile returns the compiled schema that it kept, or compiles it.
func (c *Compiler) Compile(schema json.RawMessage) (*Schema, error) {
	key := sha256.Sum256(schema)
	c.mu.Lock()
	s := c.kept[key]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := Compile(schema)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) == maxKept || c.bytes+len(schema) > maxBytes {
		c.kept, c.bytes = map[[32]byte]*Schema{}, 0
	}
	if c.kept[key] == nil { // no other call compiled it meanwhile
		c.bytes += len(schema)
	}
	c.kept[key] = s
	return s, nil
}
