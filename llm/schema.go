package llm

import (
	"encoding/json"
	"fmt"
)

// The largest JSON Schema that is accepted. The work of compiling one grows with the square of its objects and of its
// depth, so all three are limited. OpenAI accepts 5000 properties, 10 deep.
const (
	MaxSchemaBytes   = 1 << 20
	MaxSchemaDepth   = 64   // nested objects and lists
	MaxSchemaObjects = 6000 // in all
)

// CheckSchema refuses a JSON Schema that is too large to compile. It reads every byte at most once, stops at the first
// error, and does not check that the text is JSON.
func CheckSchema(schema json.RawMessage) error {
	if len(schema) > MaxSchemaBytes {
		return fmt.Errorf("%d bytes are more than the %d allowed", len(schema), MaxSchemaBytes)
	}
	depth, objects, line := 0, 0, 1
	for i := 0; i < len(schema); i++ {
		switch schema[i] {
		case '"':
			i = stringEnd(schema, i)
		case '\n':
			line++
		case '{', '[':
			depth++
			if schema[i] == '{' {
				objects++
			}
			if depth > MaxSchemaDepth {
				return fmt.Errorf("line %d, byte %d: nested more than %d levels deep", line, i+1, MaxSchemaDepth)
			}
			if objects > MaxSchemaObjects {
				return fmt.Errorf("line %d, byte %d: more than %d objects", line, i+1, MaxSchemaObjects)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// stringEnd returns the index of the quote that ends the string at i, or of the last byte.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return min(i, len(b)-1)
}
