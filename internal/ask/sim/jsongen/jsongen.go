// Package jsongen writes JSON values that follow a JSON Schema.
//
// It promises that a value depends only on the schema and the random generator. Values vary: optional
// members, lengths of lists and branches are random. Recursive schemas end, and no value is much
// larger than maxBytes.
//
// It supports draft 2020-12 and common older spellings: types, enum, const, objects, lists, numbers,
// strings with pattern and format, anyOf, oneOf, allOf, if, not, and references inside the document.
// For keywords that need trial and error (not, if, oneOf, …) it draws values until one is valid, up
// to a limit. Then it returns the last value.
//
// A schema is compiled into nodes (compile.go), from which values are drawn (write.go). The strings in
// them come from regular expressions (pattern.go) or from a Lexicon (prose.go), which also makes up plain
// text.
//
// It does not validate values.
package jsongen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/llm"
)

// maxBytes is the approximate maximum size of a value, whatever its schema.
const maxBytes = 1 << 20

// maxDraws is the maximum number of draws for a valid value.
const maxDraws = 40

// Schema is a compiled JSON Schema. It may be used from many goroutines at once.
type Schema struct {
	root  *node
	words *Lexicon
	check *jsonschema.Schema // nil if every draw is valid
}

// Compile compiles a schema.
func Compile(raw []byte) (*Schema, error) {
	if err := llm.CheckSchema(raw); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	check, err := validator(doc)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := compiler{doc: doc, memo: map[string]*node{}, order: keyOrder(raw)}
	root, err := c.build(doc, 0)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c.measure()
	s := &Schema{root: root, words: NewLexicon()}
	if c.hard {
		s.check = check
	}
	return s, nil
}

// validator compiles doc for validation. It loads no other documents.
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
	return nil, errors.New("references to other documents are not supported")
}

// Append appends a value of s.
func (s *Schema) Append(dst []byte, r *rand.Rand) []byte {
	w := writer{r: r, words: s.words, limit: len(dst) + maxBytes, anything: node{types: tString, maxLen: -1}}
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

// keyOrder returns the order in which object keys first appear in raw, so that members have the
// order of the schema.
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

// tolerantRegexp accepts patterns that Go cannot compile (lookarounds), and matches any string with
// them.
func tolerantRegexp(s string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return matchAll(s), nil
	}
	return re, nil
}

type matchAll string

func (m matchAll) MatchString(string) bool { return true }
func (m matchAll) String() string          { return string(m) }
