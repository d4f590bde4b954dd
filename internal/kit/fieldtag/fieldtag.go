// Package fieldtag reads the tags of struct fields that say which values are allowed, and checks values with them. So a rule is declared
// once, and holds wherever a value comes from: a plan file, a run file or code.
//
//   - range bounds a number or a time: 1..20, 0 (at least), >0, >0..<1, 1ms..24h;
//   - oneof lists the texts that are allowed, separated by commas;
//   - filled means that a text is not empty.
//
// In a list or a mapping, they hold for each value. A zero value that the json tag omits was not given, and keeps all rules.
package fieldtag

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/text"
)

// Rule says which values are allowed. The zero Rule allows all.
type Rule struct {
	OneOf        []string
	Low, High    float64 // of a number or, in nanoseconds, of a time
	Above, Below bool    // Low and High themselves are not allowed
	Filled       bool
	low, high    string // as they are written; a high that only says where numbers end is empty
}

// Of returns the rule in the tag of a field. It panics on a range that it cannot read: only code has it.
func Of(tag reflect.StructTag) (r Rule) {
	if oneOf := tag.Get("oneof"); oneOf != "" {
		r.OneOf = strings.Split(oneOf, ",")
	}
	r.Filled = tag.Get("filled") != ""
	if bounds := tag.Get("range"); bounds != "" {
		r.low, r.high, _ = strings.Cut(bounds, "..")
		r.low, r.Above = strings.CutPrefix(r.low, ">")
		r.high, r.Below = strings.CutPrefix(r.high, "<")
		r.Low, r.High = bound(r.low), math.MaxFloat64
		if r.high != "" {
			r.High = bound(r.high)
		}
		if n, err := strconv.Atoi(r.high); err == nil && n >= math.MaxInt32 {
			r.high = ""
		}
	}
	return r
}

func bound(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("fieldtag: a range has the bound %q: want a range such as 1..20, >0..<1 or 1ms..24h", text))
	}
	return x
}

// Bounded reports whether there is a range.
func (r *Rule) Bounded() bool { return r.low != "" }

// Holds reports whether x is within the range, if there is one.
func (r *Rule) Holds(x float64) bool {
	return !r.Bounded() || (x > r.Low || x == r.Low && !r.Above) && (x < r.High || x == r.High && !r.Below)
}

// String describes the texts that are allowed, as "one of a, b", or the range, as "1 to 20".
func (r *Rule) String() string {
	low := "at least " + r.low
	if r.Above {
		low = "more than " + r.low
	}
	switch {
	case r.OneOf != nil:
		return "one of " + strings.Join(slices.DeleteFunc(slices.Clone(r.OneOf), func(t string) bool { return t == "" }), ", ") // "" is the same as none
	case r.high == "":
		return low
	case r.Above || r.Below:
		return low + " and less than " + r.high
	}
	return r.low + " to " + r.high
}

// problem says why v is not allowed, or "".
func (r *Rule) problem(v reflect.Value) string {
	held := true
	switch {
	case v.Kind() == reflect.String && r.Filled && v.Len() == 0:
		return "is empty: want a text"
	case v.Kind() == reflect.String && r.OneOf != nil && !slices.Contains(r.OneOf, v.String()):
		return fmt.Sprintf("wants %v, found %.40q%s", r, v, text.Suggest(v.String(), r.OneOf))
	case v.CanInt():
		held = r.Holds(float64(v.Int()))
	case v.CanUint():
		held = r.Holds(float64(v.Uint()))
	case v.CanFloat():
		held = r.Holds(v.Float())
	}
	if held {
		return ""
	}
	return fmt.Sprintf("wants %v, found %v", r, v)
}

// Fault is a value that is not allowed.
type Fault struct {
	Path    []string // of its field: limits, rpm. An item of a list is as [1]
	Problem string
}

// Field returns the path as text, such as base_urls[1] or model_limits.small*.
func (f Fault) Field() string {
	var b strings.Builder
	for i, step := range f.Path {
		if i > 0 && !strings.HasPrefix(step, "[") {
			b.WriteByte('.')
		}
		if step == "" || strings.ContainsFunc(step, func(r rune) bool { return r == ' ' || !strconv.IsGraphic(r) }) {
			step = strconv.Quote(step)
		}
		b.WriteString(step)
	}
	return b.String()
}

func (f Fault) String() string { return f.Field() + ": " + f.Problem }

// Rules are the rules of the fields of a struct, and of what is in them. Nil are none.
type Rules struct{ fields []field }

type field struct {
	Rule
	index int
	name  string // empty: an embedded struct, whose fields are those of the outer one
	omit  bool   // when it is zero
	inner *Rules
}

// For returns the rules of a struct, or of the structs in a list or a mapping.
func For(t reflect.Type) *Rules { return compile(t, map[reflect.Type]*Rules{}) }

// compile makes the rules of a type. made has those of other types and of those around it, which it may contain again.
func compile(t reflect.Type, made map[reflect.Type]*Rules) *Rules {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return compile(t.Elem(), made)
	}
	if r, ok := made[t]; ok || t.Kind() != reflect.Struct {
		return r
	}
	r := &Rules{}
	made[t] = r
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case name == "" && !f.Anonymous:
			name = f.Name
		}
		own := field{Of(f.Tag), i, name, strings.HasPrefix(options, "omit"), compile(f.Type, made)}
		if own.inner != nil || own.OneOf != nil || own.Bounded() || own.Filled {
			r.fields = append(r.fields, own)
		}
	}
	if r.fields == nil {
		made[t] = nil
	}
	return made[t]
}

// Check returns the values in v, a struct or a pointer to one, that its tags do not allow.
func Check(v any) []Fault { return For(reflect.TypeOf(v)).Check(v) }

// Check returns the values in v, which has the type of r or points to it, that r does not allow, in the order of their paths.
func (r *Rules) Check(v any) []Fault {
	all := (&field{inner: r}).check(reflect.ValueOf(v), make([]string, 0, 8), nil)
	slices.SortFunc(all, func(a, b Fault) int { return slices.Compare(a.Path, b.Path) }) // mappings have no order
	return all
}

func (f *field) check(v reflect.Value, path []string, all []Fault) []Fault {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return f.check(v.Elem(), path, all)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			all = f.check(v.Index(i), append(path, "["+strconv.Itoa(i)+"]"), all)
		}
	case reflect.Map:
		for key, x := range v.Seq2() {
			all = f.check(x, append(path, key.String()), all)
		}
	case reflect.Struct:
		for i := 0; f.inner != nil && i < len(f.inner.fields); i++ {
			own, at := &f.inner.fields[i], path
			if own.name != "" {
				at = append(path, own.name)
			}
			if x := v.Field(own.index); !own.omit || !x.IsZero() {
				all = own.check(x, at, all)
			}
		}
	}
	if problem := f.problem(v); problem != "" {
		all = append(all, Fault{slices.Clone(path), problem})
	}
	return all
}
