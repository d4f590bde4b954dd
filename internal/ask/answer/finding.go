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
)

// finding says what was expected at one position and what was found.
func finding(err *jsonschema.ValidationError, v any) string {
	found := "found nothing"
	if at := locate(&v, err.InstanceLocation); at != nil {
		found = "found " + describe(at.value)
	}
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		return "expected " + strings.Join(compact(k.Want), " or ") + ", " + found
	case *kind.Enum:
		return "expected one of " + allowed(k.Want) + ", " + found
	case *kind.Const:
		return "expected " + describe(k.Want) + ", " + found
	case *kind.Required:
		return "expected the property " + names(k.Missing) + ", found none"
	case *kind.AdditionalProperties:
		return "expected no other properties, found " + names(k.Properties)
	case *kind.Pattern:
		return "expected text that matches " + clip(k.Want, 80) + ", " + found
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
		return "the number " + clip(v.String(), 30)
	case string:
		return "the string " + clip(oneLine(string(appendQuoted(nil, clip(v, 60)))), 80)
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
		out = append(out, clip(string(encode(v)), 40))
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

func compact(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }
