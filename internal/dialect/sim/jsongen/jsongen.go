// Package jsongen writes JSON values that follow a JSON Schema.
//
// What is written depends on the schema and the generator it is handed, on
// nothing else, and varies with the generator: optional members come and go,
// lists grow and shrink, branches are taken in turn. Recursive schemas end, and
// no value grows much beyond MaxBytes.
//
// It knows draft 2020-12 and the older spellings still met: types, enum, const,
// objects, lists, numbers, strings with pattern and format, anyOf, oneOf, allOf,
// if, not, and references inside the document. Where a schema uses a keyword that
// cannot simply be built towards (not, if, oneOf, …), values are drawn until one
// is valid; after a bounded number of draws the last is returned as it is.
//
// It is not for validating: that is done with a proper validator.
package jsongen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/dialect/sim/prose"
	"parley/llm"
)

// MaxBytes is about where a value stops to grow, whatever its schema asks for.
const MaxBytes = 1 << 20

// maxDraws bounds how often a value is drawn again for want of validity.
const maxDraws = 40

// Schema is a compiled JSON Schema. It may be used from many goroutines at once.
type Schema struct {
	root  *node
	words *prose.Lexicon
	check *jsonschema.Schema // nil where the first draw is known to be valid
}

// Compile reads a schema. The error says what is wrong with it.
func Compile(raw []byte) (*Schema, error) {
	if err := llm.CheckSchema(raw); err != nil {
		return nil, fmt.Errorf("jsongen: schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("jsongen: schema: %w", err)
	}
	check, err := validator(doc)
	if err != nil {
		return nil, fmt.Errorf("jsongen: schema: %w", err)
	}
	c := compiler{doc: doc, memo: map[string]*node{}, order: keyOrder(raw)}
	root, err := c.build(doc, 0)
	if err != nil {
		return nil, fmt.Errorf("jsongen: schema: %w", err)
	}
	c.measure()
	s := &Schema{root: root, words: prose.New()}
	if c.hard {
		s.check = check
	}
	return s, nil
}

// validator compiles doc for checking. It loads nothing from anywhere else.
func validator(doc any) (*jsonschema.Schema, error) {
	const address = "schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(tolerantRegexp)
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	return c.Compile(address)
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}

// Append appends a value of s.
func (s *Schema) Append(dst []byte, r *rand.Rand) []byte {
	w := writer{r: r, words: s.words, limit: len(dst) + MaxBytes, anything: node{types: tString, maxLen: -1}}
	start := len(dst)
	for range maxDraws {
		dst = w.value(dst[:start], s.root, "", 0)
		if s.check == nil || s.valid(dst[start:]) {
			break
		}
	}
	return dst
}

func (s *Schema) valid(value []byte) bool {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	return err == nil && s.check.Validate(v) == nil
}

// keyOrder notes where each object key first appears in raw, so that members are
// written in the order in which the schema's author put them.
func keyOrder(raw []byte) map[string]int {
	order := map[string]int{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var inObject []bool // one for each open bracket
	key := false
	for {
		t, err := dec.Token()
		if err != nil {
			return order
		}
		if s, ok := t.(string); ok && key {
			if _, seen := order[s]; !seen {
				order[s] = len(order)
			}
			key = false
			continue
		}
		switch t {
		case json.Delim('{'):
			inObject = append(inObject, true)
		case json.Delim('['):
			inObject = append(inObject, false)
		case json.Delim('}'), json.Delim(']'):
			inObject = inObject[:len(inObject)-1]
		}
		key = len(inObject) > 0 && inObject[len(inObject)-1]
	}
}
