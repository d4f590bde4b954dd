// Package jsongen makes up JSON values that follow a JSON Schema, and plain English.
//
// It promises that a value depends only on the schema and the random generator. Values vary, recursive schemas end, and no value is much
// larger than maxBytes.
//
// A value is drawn by the keywords that schemas of answers have: types, enum, const, members, lists, bounds, formats, patterns, allOf, anyOf,
// oneOf and references. Then it is validated, and drawn again if it is not valid: most values of not, if, contains and the like are found this way.
// After maxDraws the last value is returned.
package jsongen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/ask/answer"
	"parley/internal/ask/wire/body"
)

const (
	maxBytes  = 64 << 10 // of a value, about
	maxParts  = 50_000   // schemas that all draws of a value follow
	maxDraws  = 40       // for a valid value
	maxDepth  = 6        // from here on, values are as flat as their schema allows
	maxNested = 150
)

// Schema is a compiled JSON Schema. It may be used from many goroutines at once.
type Schema struct {
	doc   any
	order map[string]int // of members
	check *answer.Schema
	words *Lexicon
}

// Compile compiles a schema.
func Compile(raw []byte) (*Schema, error) {
	check, err := answer.Compile(raw)
	if err != nil {
		return nil, err
	}
	s := &Schema{order: keyOrder(raw), check: check, words: NewLexicon()}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&s.doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// keyOrder returns the order in which names first appear in a schema, which is the order of members.
func keyOrder(raw []byte) map[string]int {
	order := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		t, err := d.Token()
		if err != nil {
			return order
		}
		if name, ok := t.(string); ok {
			if _, seen := order[name]; !seen {
				order[name] = len(order)
			}
		}
	}
}

// Append appends a value of s.
func (s *Schema) Append(dst []byte, r *rand.Rand) []byte {
	start := len(dst)
	d := draft{Schema: s, r: r, parts: maxParts, size: start + maxBytes}
	for range maxDraws {
		dst = d.value(dst[:start], s.doc, "", 0)
		if _, how, err := s.check.Read(string(dst[start:])); err == nil && how != answer.Tolerant {
			break
		}
	}
	return dst
}

// draft is a value that is being drawn.
type draft struct {
	*Schema
	r     *rand.Rand
	parts int // left
	size  int // of the buffer, at most
}

// value appends a value of a schema. name is the name of its member.
func (d *draft) value(dst []byte, schema any, name string, depth int) []byte {
	m := map[string]any{}
	d.merge(m, schema, depth)
	if depth > maxNested || len(dst) > d.size || d.parts < 0 {
		return append(dst, "null"...)
	}
	if v, ok := m["const"]; ok {
		return appendJSON(dst, v)
	}
	if values := list(m["enum"]); len(values) > 0 {
		return appendJSON(dst, values[d.r.IntN(len(values))])
	}
	switch d.pickType(m, depth) {
	case "null":
		return append(dst, "null"...)
	case "boolean":
		return strconv.AppendBool(dst, d.r.IntN(2) == 0)
	case "integer":
		return d.integer(dst, m)
	case "number":
		return d.number(dst, m)
	case "array":
		return d.array(dst, m, name, depth)
	case "object":
		return d.object(dst, m, depth)
	default:
		return body.Text(dst, d.text(m, name))
	}
}

func appendJSON(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

// merge adds the keywords of a schema to m: with references resolved, and one of each list of alternatives.
func (d *draft) merge(m map[string]any, schema any, depth int) {
	s, _ := schema.(map[string]any)
	if d.parts--; d.parts < 0 {
		return
	}
	for k, v := range s {
		if old, ok := m[k]; ok {
			v = both(k, old, v)
		}
		m[k] = v
	}
	if ref, ok := s["$ref"].(string); ok {
		d.merge(m, d.target(ref), depth)
	}
	for _, part := range list(s["allOf"]) {
		d.merge(m, part, depth)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if choices := list(s[k]); len(choices) > 0 {
			d.merge(m, d.choose(choices, depth), depth)
		}
	}
}

// both returns a value of a keyword that says what two of its values say.
func both(k string, a, b any) any {
	switch {
	case k == "properties":
		out := maps.Clone(object(a))
		for name, s := range object(b) {
			if old, ok := out[name]; ok {
				s = map[string]any{"allOf": []any{old, s}}
			}
			out[name] = s
		}
		return out
	case k == "required":
		return slices.Concat(list(a), list(b))
	case k == "type" || k == "enum":
		var common []any
		for _, v := range list(a) {
			if slices.ContainsFunc(list(b), func(w any) bool { return fmt.Sprint(v) == fmt.Sprint(w) }) {
				common = append(common, v)
			}
		}
		if len(common) > 0 {
			return common
		}
	case strings.HasPrefix(k, "min") || k == "exclusiveMinimum":
		if number(a, 0) > number(b, 0) {
			return a
		}
	case strings.HasPrefix(k, "max") || k == "exclusiveMaximum":
		if number(a, 0) < number(b, 0) {
			return a
		}
	}
	return b
}

// target returns what a reference inside the document points to, or nil.
func (d *draft) target(ref string) any {
	at := d.doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
		if part == "" {
			continue
		}
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(list(at)) {
			at = list(at)[i]
			continue
		}
		at = object(at)[part]
	}
	return at
}

// choose returns one of some schemas, where values are nested deeply the one with the flattest values.
func (d *draft) choose(choices []any, depth int) any {
	if depth < maxDepth {
		return choices[d.r.IntN(len(choices))]
	}
	return slices.MinFunc(choices, func(a, b any) int { return d.height(a, 4) - d.height(b, 4) })
}

// height returns how deeply the values of a schema are nested at least, up to a limit.
func (d *draft) height(schema any, limit int) int {
	if d.parts--; d.parts < 0 || limit == 0 {
		return limit
	}
	s, least := object(schema), 0
	inside := func(part any) { least = max(least, 1+d.height(part, limit-1)) }
	if ref, ok := s["$ref"].(string); ok {
		least = d.height(d.target(ref), limit-1)
	}
	for _, name := range list(s["required"]) {
		inside(object(s["properties"])[fmt.Sprint(name)])
	}
	if number(s["minItems"], 0) > 0 {
		inside(s["items"])
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		flattest := limit
		for _, one := range list(s[k]) {
			flattest = min(flattest, d.height(one, limit-1))
		}
		if s[k] != nil {
			least = max(least, flattest)
		}
	}
	return least
}

// pickType returns one of the types that m allows. Without types, the other keywords say which.
func (d *draft) pickType(m map[string]any, depth int) string {
	var types, flat []string
	for _, v := range list(m["type"]) {
		t := fmt.Sprint(v)
		if types = append(types, t); t != "object" && t != "array" {
			flat = append(flat, t)
		}
	}
	if depth >= maxDepth && len(flat) > 0 {
		types = flat
	}
	if len(types) > 1 && d.r.IntN(4) > 0 { // null is allowed, but rarely useful
		types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	}
	if len(types) > 0 {
		return types[d.r.IntN(len(types))]
	}
	for _, hint := range []struct{ kind, keys string }{
		{"object", "properties required additionalProperties minProperties"},
		{"array", "items prefixItems minItems maxItems"},
		{"number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"},
	} {
		for k := range strings.FieldsSeq(hint.keys) {
			if m[k] != nil {
				return hint.kind
			}
		}
	}
	return "string"
}

func (d *draft) array(dst []byte, m map[string]any, name string, depth int) []byte {
	items, first := m["items"], list(m["prefixItems"])
	if tuple, ok := items.([]any); ok { // as drafts before 2020-12 spelled it
		items, first = nil, tuple
	}
	least := int(number(m["minItems"], 0))
	maxItems := int(number(m["maxItems"], float64(max(least, len(first))+3)))
	size := max(least, len(first))
	if len(first) == 0 && depth < maxDepth {
		size += d.r.IntN(min(4, max(1, maxItems-size+1)))
		if size == 0 && maxItems > 0 && d.r.IntN(8) > 0 {
			size = 1 // an empty list is allowed, but rarely useful
		}
	}
	unique, seen := m["uniqueItems"] == true, map[string]bool{}
	dst = append(dst, '[')
	for n, tries := 0, 0; n < min(size, maxItems) && tries < 50 && len(dst) < d.size && d.parts > 0; {
		start := len(dst)
		if n > 0 {
			dst = append(dst, ',')
		}
		from := len(dst)
		if n < len(first) {
			dst = d.value(dst, first[n], name, depth+1)
		} else {
			dst = d.value(dst, items, name, depth+1)
		}
		if item := string(dst[from:]); unique && seen[item] {
			dst, tries = dst[:start], tries+1
			continue
		} else if unique {
			seen[item] = true
		}
		n++
	}
	return append(dst, ']')
}

func (d *draft) object(dst []byte, m map[string]any, depth int) []byte {
	props, required := object(m["properties"]), map[string]bool{}
	for _, name := range list(m["required"]) {
		required[fmt.Sprint(name)] = true
	}
	names := slices.Collect(maps.Keys(props))
	for name := range required {
		if _, ok := props[name]; !ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return d.order[a] - d.order[b] })
	size, others := 0, m["additionalProperties"]
	dst = append(dst, '{')
	write := func(name string, schema any) {
		if size++; size > 1 {
			dst = append(dst, ',')
		}
		dst = d.value(append(body.Text(dst, name), ':'), schema, name, depth+1)
	}
	for _, name := range names {
		if required[name] || depth < maxDepth && d.r.IntN(10) < 7 {
			schema, ok := props[name]
			if !ok {
				schema = others
			}
			write(name, schema)
		}
	}
	want := int(number(m["minProperties"], 0)) - size
	if object(others) != nil && len(names) == 0 && depth < maxDepth {
		want = max(want, 1+d.r.IntN(3))
	}
	for used := map[string]bool{}; want > 0 && others != false && len(used) < 50; {
		name := d.words.noun(d.r)
		if _, taken := props[name]; !taken && !used[name] {
			write(name, others)
			want--
		}
		used[name] = true
	}
	return append(dst, '}')
}

// text makes up a string of m that fits the name of its member.
func (d *draft) text(m map[string]any, name string) string {
	least, maxLength := int(min(number(m["minLength"], 0), maxBytes)), int(number(m["maxLength"], math.MaxInt32))
	if p, ok := m["pattern"].(string); ok {
		if tree, err := syntax.Parse(p, syntax.Perl); err == nil {
			return d.matching(tree, least, maxLength)
		}
	}
	if s := d.formatted(m["format"]); s != "" {
		return s
	}
	s := d.phrase(name)
	for len(s) < least {
		s = string(d.words.AppendText([]byte(s+" "), d.r, "", least-len(s)))
	}
	if least == maxLength || len(s) > maxLength {
		s = s[:maxLength] // what we make up is ASCII
	}
	if short := strings.TrimRight(s, " "); len(short) >= least {
		return short
	}
	return s
}

// phrase makes up a string that fits the name of a member.
func (d *draft) phrase(name string) string {
	name = strings.ToLower(name)
	for talkative := range strings.FieldsSeq("answer analysis content description explanation message reason summary text thought") {
		if strings.Contains(name, talkative) {
			return string(d.words.AppendText(nil, d.r, "", 20+d.r.IntN(160)))
		}
	}
	switch {
	case strings.HasSuffix(name, "name") || name == "author":
		return d.words.name(d.r)
	case d.r.IntN(2) == 0:
		return d.words.noun(d.r)
	default:
		return d.words.phrase(d.r)
	}
}

// formatted makes up a string in a format, or none for other formats.
func (d *draft) formatted(format any) string {
	r, host := d.r, d.words.noun(d.r)+".example"
	date := fmt.Sprintf("%04d-%02d-%02d", 1990+r.IntN(50), 1+r.IntN(12), 1+r.IntN(28))
	clock := fmt.Sprintf("%02d:%02d:%02dZ", r.IntN(24), r.IntN(60), r.IntN(60))
	switch format {
	case "date":
		return date
	case "time":
		return clock
	case "date-time":
		return date + "T" + clock
	case "duration":
		return fmt.Sprintf("P%dDT%dH", r.IntN(30), 1+r.IntN(23))
	case "email":
		return strings.ToLower(d.words.name(r)) + "@" + host
	case "hostname":
		return host
	case "ipv4":
		return fmt.Sprintf("192.0.2.%d", r.IntN(256))
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", 1+r.IntN(65000))
	case "uri", "url":
		return "https://" + host + "/" + d.words.noun(r)
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), 0x8000|r.IntN(1<<14), r.Int64N(1<<48))
	}
	return ""
}

// matching makes up a string for a regular expression. Anchors and boundaries write nothing: the whole value is validated.
func (d *draft) matching(tree *syntax.Regexp, least, maxLength int) (s string) {
	for try := range 20 {
		s = string(d.write(nil, tree, 2<<(try%8)))
		if n := utf8.RuneCountInString(s); n >= least && n <= maxLength {
			break
		}
	}
	return s
}

// write appends a string for a syntax tree, in which an operator repeats at most more times than it must.
func (d *draft) write(dst []byte, re *syntax.Regexp, more int) []byte {
	least, high := 0, more
	switch re.Op {
	case syntax.OpLiteral:
		return append(dst, string(re.Rune)...)
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return dst
		}
		from := 2 * d.r.IntN(len(re.Rune)/2)
		lo, hi := re.Rune[from], min(re.Rune[from+1], '~')
		return utf8.AppendRune(dst, lo+d.r.Int32N(max(1, hi-lo+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return append(dst, byte('a'+d.r.IntN(26)))
	case syntax.OpAlternate:
		return d.write(dst, re.Sub[d.r.IntN(len(re.Sub))], more)
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			dst = d.write(dst, sub, more)
		}
		return dst
	case syntax.OpPlus:
		least, high = 1, more
	case syntax.OpQuest:
		high = 1
	case syntax.OpRepeat:
		least, high = re.Min, re.Min+more
		if re.Max >= 0 {
			high = min(high, re.Max)
		}
	case syntax.OpStar:
	default:
		return dst
	}
	for range least + d.r.IntN(high-least+1) {
		if len(dst) < maxBytes {
			dst = d.write(dst, re.Sub[0], more)
		}
	}
	return dst
}

// bounds returns the bounds of numbers. It makes up missing ones.
func bounds(m map[string]any) (lo, hi float64) {
	const span = 100
	lo = max(number(m["minimum"], math.Inf(-1)), number(m["exclusiveMinimum"], math.Inf(-1)))
	hi = min(number(m["maximum"], math.Inf(1)), number(m["exclusiveMaximum"], math.Inf(1)))
	switch {
	case math.IsInf(lo, -1) && math.IsInf(hi, 1):
		return 0, span
	case math.IsInf(lo, -1):
		return min(0, hi-span), hi
	case math.IsInf(hi, 1):
		return lo, lo + max(span, math.Abs(lo)/10)
	}
	return lo, hi
}

func (d *draft) integer(dst []byte, m map[string]any) []byte {
	step := number(m["multipleOf"], 1)
	if step != math.Trunc(step) || step < 1 {
		step = 1
	}
	return strconv.AppendFloat(dst, d.multiple(m, step), 'f', 0, 64)
}

func (d *draft) number(dst []byte, m map[string]any) []byte {
	if step, ok := m["multipleOf"].(json.Number); ok {
		_, decimals, _ := strings.Cut(step.String(), ".")
		return strconv.AppendFloat(dst, d.multiple(m, number(step, 1)), 'f', len(decimals), 64)
	}
	lo, hi := bounds(m)
	v := lo + d.r.Float64()*(hi-lo)
	if short := math.Round(v*100) / 100; short > lo && short < hi {
		v = short
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// multiple returns a multiple of step within the bounds of m.
func (d *draft) multiple(m map[string]any, step float64) float64 {
	const almost = 1e-9
	lo, hi := bounds(m)
	from, to := math.Ceil(lo/step-almost), math.Floor(hi/step+almost)
	if _, ok := m["exclusiveMinimum"].(json.Number); ok && from*step <= lo {
		from++
	}
	if _, ok := m["exclusiveMaximum"].(json.Number); ok && to*step >= hi {
		to--
	}
	v := step * (from + math.Floor(d.r.Float64()*max(1, min(to-from+1, 1e15))))
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return v
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// list returns the elements of a list, or another value as its only element.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// number returns the value of a number, or another if v is not one.
func number(v any, otherwise float64) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil {
		return otherwise
	}
	return f
}
