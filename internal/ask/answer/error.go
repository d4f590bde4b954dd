package answer

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/text"
)

// Error describes an unusable answer, in words that help a model to repair it.
type Error struct {
	// Truncated means that the answer ended before its value did. Asking again with more room may help; asking for
	// a correction does not.
	Truncated bool
	// Findings say where, what was expected and what was found. They are few and short.
	Findings []string
	// More is the number of findings left out.
	More int
}

// The limits of an Error.
const (
	maxFindings = 5
	maxFinding  = 240
)

// Error returns e on one line.
func (e *Error) Error() string { return e.what() }

func (e *Error) what() string {
	if e.Truncated {
		return "cut off before the JSON value ended"
	}
	s := strings.Join(e.Findings, "; ")
	if e.More > 0 {
		s += fmt.Sprintf("; and %d more", e.More)
	}
	return s
}

// failure returns the error for a text without a value that follows the schema. problem describes the largest
// complete value, or is nil.
func (s *scan) failure(problem *Error) *Error {
	switch {
	case s.cut:
		return &Error{Truncated: true}
	case problem != nil && (s.syntax == nil || s.members == 0):
		return problem
	case s.syntax != nil:
		return &Error{Findings: []string{text.Excerpt("not valid JSON: "+s.syntax.what+s.near(), maxFinding)}}
	default:
		return &Error{Findings: []string{"expected a JSON value, found none"}}
	}
}

// near quotes the text before the syntax error.
func (s *scan) near() string {
	before := strings.ToValidUTF8(s.in[max(0, s.syntax.at-30):s.syntax.at], "")
	if strings.TrimSpace(before) == "" {
		return ""
	}
	return " after " + quoted(before, 60)
}

// newError describes the errors of the validator. The validator's order changes from call to call; ours does not.
func newError(err *jsonschema.ValidationError, v any) *Error {
	var all []string
	for _, leaf := range relevant(err) {
		all = append(all, text.Excerpt(where(v, leaf.InstanceLocation)+": "+finding(leaf, v), maxFinding))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	e := &Error{Findings: all}
	if len(all) > maxFindings {
		e.Findings, e.More = all[:maxFindings], len(all)-maxFindings
	}
	return e
}

// relevant returns the errors to report: among alternatives, those of the one that failed deepest.
func relevant(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch k := err.ErrorKind.(type) {
	case *kind.AnyOf:
		return nearest(err)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return []*jsonschema.ValidationError{err}
		}
		return nearest(err)
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.PropertyNames, *kind.Not:
		return []*jsonschema.ValidationError{err}
	}
	if len(err.Causes) == 0 {
		return []*jsonschema.ValidationError{err}
	}
	var all []*jsonschema.ValidationError
	for _, c := range err.Causes {
		all = append(all, relevant(c)...)
	}
	return all
}

// nearest returns the errors of the alternative that failed deepest in the answer. If all failed by the type of the
// whole answer, it joins the types.
func nearest(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var best []*jsonschema.ValidationError
	var types kind.Type
	deepest := -1
	for _, c := range err.Causes {
		found := relevant(c)
		depth := 0
		for _, f := range found {
			depth = max(depth, 2*(len(f.InstanceLocation)-len(err.InstanceLocation)))
			t, isType := f.ErrorKind.(*kind.Type)
			if !isType {
				depth = max(depth, 1)
			} else if depth == 0 {
				types.Got, types.Want = t.Got, append(types.Want, t.Want...)
			}
		}
		if depth > deepest || depth == deepest && len(found) < len(best) {
			best, deepest = found, depth
		}
	}
	if deepest == 0 {
		return []*jsonschema.ValidationError{{SchemaURL: err.SchemaURL, InstanceLocation: err.InstanceLocation, ErrorKind: &types}}
	}
	return best
}

// where writes a path: orders[0].unit.
func where(v any, path []string) string {
	if len(path) == 0 {
		return "the answer"
	}
	var b strings.Builder
	for i, step := range path {
		if i == 16 {
			b.WriteString("…")
			break
		}
		if _, list := v.([]any); list {
			step = "[" + step + "]"
		} else if i > 0 {
			step = "." + step
		}
		b.WriteString(text.Excerpt(step, 40))
		at := locate(&v, path[i:i+1])
		if at == nil {
			break
		}
		v = at.value
	}
	return oneLine(b.String())
}

// finding says what was expected at one position and what was found.
func finding(err *jsonschema.ValidationError, v any) string {
	found := "found nothing"
	if at := locate(&v, err.InstanceLocation); at != nil {
		found = "found " + describe(at.value)
	}
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		return "expected " + strings.Join(sortedUnique(k.Want), " or ") + ", " + found
	case *kind.Enum:
		return "expected one of " + allowed(k.Want) + ", " + found
	case *kind.Const:
		return "expected " + describe(k.Want) + ", " + found
	case *kind.Required:
		return "expected the property " + names(k.Missing) + ", found none"
	case *kind.AdditionalProperties:
		return "expected no other properties, found " + names(k.Properties)
	case *kind.Pattern:
		return "expected text that matches " + text.Excerpt(k.Want, 80) + ", " + found
	case *kind.Format:
		return "expected " + k.Want + ", " + found
	case *kind.FalseSchema:
		return "expected nothing here, " + found
	case *kind.OneOf:
		return fmt.Sprintf("expected exactly one of the allowed forms, found that %d fit", len(k.Subschemas))
	}
	if want := bound(err.ErrorKind); want != "" {
		return "expected " + want + ", " + found
	}
	return "expected what " + strings.Join(err.ErrorKind.KeywordPath(), "/") + " in the schema asks for, " + found
}

// bound describes limits of sizes and numbers.
func bound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return fmt.Sprintf("at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("at most %d items", k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("at least %d letters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("at most %d letters", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("at least %d properties", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("at most %d properties", k.Want)
	case *kind.Minimum:
		return "at least " + number(k.Want)
	case *kind.Maximum:
		return "at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "less than " + number(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + number(k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items that differ (%d and %d are equal)", k.Duplicates[0], k.Duplicates[1])
	}
	return ""
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

// describe describes a value: the number 5, the string "abc", an array of 3.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return "the number " + text.Excerpt(v.String(), 30)
	case string:
		return "the string " + text.Excerpt(oneLine(string(body.Text(nil, text.Excerpt(v, 60)))), 80)
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

// allowed lists allowed values as JSON, up to a limit.
func allowed(values []any) string {
	var out []string
	for i, v := range values {
		if i == 12 {
			out = append(out, fmt.Sprintf("… (%d in all)", len(values)))
			break
		}
		out = append(out, text.Excerpt(string(encode(v)), 40))
	}
	return strings.Join(out, ", ")
}

// names lists property names in order, up to a limit.
func names(all []string) string {
	all = slices.Sorted(slices.Values(all))
	var out []string
	for i, n := range all {
		if i == 6 {
			out = append(out, "…")
			break
		}
		out = append(out, quoted(n, 40))
	}
	return strings.Join(out, ", ")
}

// oneLine replaces characters that are not printable: hostile text may hold terminal commands.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

func sortedUnique(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
