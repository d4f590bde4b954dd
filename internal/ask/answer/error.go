package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
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
func (e *Error) Error() string { return "answer: " + e.what() }

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
		return &Error{Findings: []string{clip("not valid JSON: "+s.syntax.what+s.near(), maxFinding)}}
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
		text := where(v, leaf.InstanceLocation) + ": " + finding(leaf, v)
		all = append(all, clip(text, maxFinding))
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
		b.WriteString(clip(step, 40))
		at := locate(&v, path[i:i+1])
		if at == nil {
			break
		}
		v = at.value
	}
	return oneLine(b.String())
}
