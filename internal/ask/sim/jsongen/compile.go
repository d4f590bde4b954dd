package jsongen

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	maxNodes  = 5_000
	maxNested = 150
	endless   = math.MaxInt32 // the height of a schema without a finite value
)

var errTooLarge = errors.New("it is too large or too deeply nested")

// types is a set of JSON types.
type types uint8

const (
	tNull types = 1 << iota
	tBool
	tInteger
	tNumber
	tString
	tArray
	tObject

	tAny = tNull | tBool | tInteger | tNumber | tString | tArray | tObject
)

// node is a compiled schema: references are resolved, and allOf is merged.
type node struct {
	never   bool
	choices []*node // alternatives; if there are any, one of them is written
	types   types
	enum    [][]byte

	members    []member
	additional *node // nil: no additional members are written
	patterns   []patternMember
	names      *node // of additional members, or nil
	dependent  map[string][]string
	minMembers int
	maxMembers int

	prefix             []*node
	items              *node // nil: anything
	contains           *node
	minItems, maxItems int
	minContains        int
	unique             bool

	num numberRange

	minLen, maxLen int
	pattern        *pattern
	format         string

	height int // the minimum nesting of a value, or endless
}

type member struct {
	name     string
	node     *node
	required bool
}

type patternMember struct {
	pattern *pattern
	node    *node
}

// compiler builds nodes. Schemas with equal text become one node, which also handles recursion.
type compiler struct {
	doc   any
	memo  map[string]*node
	nodes []*node
	order map[string]int
	hard  bool // only trying can satisfy some keyword
}

func (c *compiler) build(s any, depth int) (*node, error) {
	if depth > maxNested || len(c.nodes) > maxNodes {
		return nil, errTooLarge
	}
	key, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if n, ok := c.memo[string(key)]; ok {
		return n, nil
	}
	n := &node{height: endless}
	c.memo[string(key)] = n
	c.nodes = append(c.nodes, n)
	switch s := s.(type) {
	case bool:
		n.never = !s
		n.types, n.maxLen = tString, -1
		return n, nil
	case map[string]any:
		flat, err := c.flatten(s, depth)
		if err != nil {
			return nil, err
		}
		return n, c.fill(n, flat, depth)
	default:
		return nil, errors.New("a schema must be an object or a boolean")
	}
}

// fill sets n from a flat schema.
func (c *compiler) fill(n *node, m map[string]any, depth int) error {
	if groups, ok := m[keyGroups].([]any); ok && len(groups) > 0 {
		return c.fillChoices(n, m, groups, depth)
	}
	n.never = m[keyNever] != nil
	n.types = typesOf(m)
	n.never = n.never || n.types == 0
	c.fillEnum(n, m)
	n.num = rangeOf(m)
	n.minLen, n.maxLen = countOf(m, "minLength", 0), countOf(m, "maxLength", -1)
	n.format, _ = m["format"].(string)
	if p, ok := m["pattern"].(string); ok {
		n.pattern = newPattern(p)
		c.hard = c.hard || n.pattern == nil || n.format != ""
	}
	if err := c.fillArray(n, m, depth); err != nil {
		return err
	}
	return c.fillObject(n, m, depth)
}

// fillChoices makes a choice of each alternative in the first group, merged with all the rest.
func (c *compiler) fillChoices(n *node, m map[string]any, groups []any, depth int) error {
	rest := make(map[string]any, len(m))
	maps.Copy(rest, m)
	delete(rest, keyGroups)
	if len(groups) > 1 {
		rest[keyGroups] = groups[1:]
	}
	alternatives, _ := groups[0].([]any)
	for _, alt := range alternatives {
		s := alt
		if len(rest) > 0 {
			s = map[string]any{"allOf": []any{rest, alt}, keyMerged: true}
		}
		choice, err := c.build(s, depth+1)
		if err != nil {
			return err
		}
		n.choices = append(n.choices, choice)
	}
	n.never = len(n.choices) == 0
	return nil
}

// fillEnum keeps the enum values that have an allowed type.
func (c *compiler) fillEnum(n *node, m map[string]any) {
	values, ok := m["enum"].([]any)
	if v, is := m["const"]; is {
		if ok {
			c.hard = true
		}
		values, ok = []any{v}, true
	}
	if !ok {
		return
	}
	for _, v := range values {
		if typeOfValue(v)&widen(n.types) == 0 {
			continue
		}
		if b, err := json.Marshal(v); err == nil {
			n.enum = append(n.enum, b)
		}
	}
	n.never = n.never || len(n.enum) == 0
}

func (c *compiler) fillArray(n *node, m map[string]any, depth int) error {
	n.minItems, n.maxItems = countOf(m, "minItems", 0), countOf(m, "maxItems", -1)
	n.unique, _ = m["uniqueItems"].(bool)
	prefix, items := m["prefixItems"], m["items"]
	if list, ok := items.([]any); ok { // as drafts before 2020-12 spelled it
		prefix, items = list, m["additionalItems"]
	}
	list, _ := prefix.([]any)
	var err error
	for _, s := range list {
		p, err := c.build(s, depth+1)
		if err != nil {
			return err
		}
		n.prefix = append(n.prefix, p)
	}
	if items != nil {
		if n.items, err = c.build(items, depth+1); err != nil {
			return err
		}
	}
	if s, ok := m["contains"]; ok {
		c.hard = true
		n.minContains = countOf(m, "minContains", 1)
		n.contains, err = c.build(s, depth+1)
	}
	return err
}

func (c *compiler) fillObject(n *node, m map[string]any, depth int) error {
	n.minMembers, n.maxMembers = countOf(m, "minProperties", 0), countOf(m, "maxProperties", -1)
	if err := c.fillMembers(n, m, depth); err != nil {
		return err
	}
	var err error
	if s, ok := m["additionalProperties"]; ok {
		if n.additional, err = c.build(s, depth+1); err != nil {
			return err
		}
	} else if n.minMembers > 0 {
		if n.additional, err = c.build(true, depth+1); err != nil {
			return err
		}
	}
	if s, ok := m["propertyNames"]; ok {
		c.hard = true
		if n.names, err = c.build(s, depth+1); err != nil {
			return err
		}
	}
	byPattern, _ := m["patternProperties"].(map[string]any)
	for _, p := range sortedKeys(byPattern) {
		c.hard = true
		v, err := c.build(byPattern[p], depth+1)
		if err != nil {
			return err
		}
		if pat := newPattern(p); pat != nil {
			n.patterns = append(n.patterns, patternMember{pattern: pat, node: v})
		}
	}
	return nil
}

func (c *compiler) fillMembers(n *node, m map[string]any, depth int) error {
	props, _ := m["properties"].(map[string]any)
	required := stringsOf(m["required"])
	if deps, ok := m["dependentRequired"].(map[string]any); ok {
		n.dependent = map[string][]string{}
		for k, v := range deps {
			n.dependent[k] = stringsOf(v)
		}
	}
	names := sortedKeys(props)
	for _, r := range required {
		if _, ok := props[r]; !ok {
			names = append(names, r)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return c.order[a] - c.order[b] })
	for _, name := range slices.Compact(names) {
		s, ok := props[name]
		if !ok {
			if s, ok = m["additionalProperties"]; !ok {
				s = true
			}
		}
		v, err := c.build(s, depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name: name, node: v, required: slices.Contains(required, name)})
	}
	return nil
}

// measure computes the height of every node: it lowers heights until nothing changes.
func (c *compiler) measure() {
	for changed := true; changed; {
		changed = false
		for _, n := range c.nodes {
			if h := n.leastHeight(); h < n.height {
				n.height, changed = h, true
			}
		}
	}
}

// Keys that flatten adds. A schema that has one already gets a wrong but harmless value.
const (
	keyGroups = "\x00groups" // lists of alternatives; a value follows one of each
	keyNever  = "\x00never"  // no value is valid
	keyMerged = "\x00merged" // flatten added this allOf
)

// annotation reports whether a keyword has no effect on which values are valid.
func annotation(k string) bool {
	switch k {
	case "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "default", "definitions",
		"deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly":
		return true
	}
	return false
}

// flatten resolves references and merges allOf. The result has one level of plain keywords, and groups
// of alternatives.
func (c *compiler) flatten(m map[string]any, depth int) (map[string]any, error) {
	if depth > maxNested {
		return nil, errTooLarge
	}
	out := withoutHandled(m)
	for _, k := range []string{"dependencies", "dependentSchemas", "not", "unevaluatedItems", "unevaluatedProperties"} {
		_, found := m[k]
		c.hard = c.hard || found // only trying can satisfy it
	}
	if ref, ok := reference(m); ok {
		target, err := c.resolve(ref)
		if err != nil {
			return nil, err
		}
		if out, err = c.mergeIn(out, target, depth); err != nil {
			return nil, err
		}
	}
	if all, ok := m["allOf"].([]any); ok {
		c.hard = c.hard || m[keyMerged] == nil
		for _, s := range all {
			var err error
			if out, err = c.mergeIn(out, s, depth); err != nil {
				return nil, err
			}
		}
	}
	c.addGroups(out, m)
	return out, nil
}

// withoutHandled returns a copy of m without annotations and without the keywords that flatten handles.
func withoutHandled(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch k {
		case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else", keyMerged:
		default:
			if !annotation(k) {
				out[k] = v
			}
		}
	}
	return out
}

func (c *compiler) addGroups(out, m map[string]any) {
	groups, _ := out[keyGroups].([]any)
	groups = slices.Clone(groups)
	if any, ok := m["anyOf"].([]any); ok {
		groups = append(groups, any)
	}
	if one, ok := m["oneOf"].([]any); ok {
		c.hard = c.hard || len(one) > 1
		groups = append(groups, one)
	}
	if cond, ok := m["if"]; ok {
		c.hard = true
		then, otherwise := orTrue(m["then"]), orTrue(m["else"])
		groups = append(groups, []any{map[string]any{"allOf": []any{cond, then}}, otherwise})
	}
	if len(groups) > 0 {
		out[keyGroups] = groups
	}
}

func orTrue(s any) any {
	if s == nil {
		return true
	}
	return s
}

func reference(m map[string]any) (string, bool) {
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if s, ok := m[k].(string); ok {
			return s, true
		}
	}
	return "", false
}

// resolve returns the target of a reference inside the document.
func (c *compiler) resolve(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || (pointer != "" && pointer[0] != '/') {
		return nil, fmt.Errorf("$ref %q: only references of the form #/… are supported", ref)
	}
	at := c.doc
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		if un, err := url.PathUnescape(part); err == nil {
			part = un
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("$ref %q points to nothing", ref)
			}
			at = v[i]
		default:
			at = nil
		}
		if at == nil {
			return nil, fmt.Errorf("$ref %q points to nothing", ref)
		}
	}
	return at, nil
}

// mergeIn adds the constraints of s to out.
func (c *compiler) mergeIn(out map[string]any, s any, depth int) (map[string]any, error) {
	switch s := s.(type) {
	case bool:
		if !s {
			out[keyNever] = true
		}
		return out, nil
	case map[string]any:
		flat, err := c.flatten(s, depth+1)
		if err != nil {
			return nil, err
		}
		for _, k := range sortedKeys(flat) {
			if have, ok := out[k]; ok {
				out[k] = c.mergeKey(k, have, flat[k])
			} else {
				out[k] = flat[k]
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("a schema must be an object or a boolean")
	}
}

func (c *compiler) mergeKey(key string, a, b any) any {
	if reflect.DeepEqual(a, b) && key != keyGroups {
		return a
	}
	switch key {
	case "type":
		return namesOf(widen(typesNamed(a)) & widen(typesNamed(b)))
	case "required":
		return toAny(union(stringsOf(a), stringsOf(b)))
	case "properties":
		return mergeMembers(a, b)
	case "additionalProperties", "contains", "propertyNames":
		return map[string]any{"allOf": []any{a, b}, keyMerged: true}
	case "items":
		_, la := a.([]any)
		_, lb := b.([]any)
		if !la && !lb {
			return map[string]any{"allOf": []any{a, b}, keyMerged: true}
		}
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return larger(a, b, true)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return larger(a, b, false)
	case "enum":
		return intersection(a, b)
	case "uniqueItems":
		return true
	case keyGroups:
		la, _ := a.([]any)
		lb, _ := b.([]any)
		return append(slices.Clone(la), lb...)
	}
	c.hard = true
	return b
}

func mergeMembers(a, b any) any {
	pa, _ := a.(map[string]any)
	pb, _ := b.(map[string]any)
	out := maps.Clone(pa)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range pb {
		if have, ok := out[k]; ok && !reflect.DeepEqual(have, v) {
			v = map[string]any{"allOf": []any{have, v}, keyMerged: true}
		}
		out[k] = v
	}
	return out
}

func larger(a, b any, want bool) any {
	x, okX := rat(a)
	y, okY := rat(b)
	if okX && okY && (x.Cmp(y) > 0) == want {
		return a
	}
	return b
}

func intersection(a, b any) any {
	la, _ := a.([]any)
	lb, _ := b.([]any)
	out := []any{}
	for _, v := range la {
		if slices.ContainsFunc(lb, func(w any) bool { return reflect.DeepEqual(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// rat decodes a number of any reasonable size.
func rat(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 40 {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f > 1e18 || f < -1e18 {
		return nil, false
	}
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n)[i+1:]); err != nil || e < -40 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(n))
}

// typeNames lists the types in the order of their bits.
func typeNames() []string {
	return []string{"null", "boolean", "integer", "number", "string", "array", "object"}
}

// typesNamed decodes the value of a type keyword.
func typesNamed(v any) types {
	var t types
	for _, name := range stringsOf(v) {
		if i := slices.Index(typeNames(), name); i >= 0 {
			t |= 1 << i
		}
	}
	return t
}

func namesOf(t types) []any {
	out := []any{}
	for i, name := range typeNames() {
		if t&(1<<i) != 0 && !(name == "integer" && t&tNumber != 0) {
			out = append(out, name)
		}
	}
	return out
}

// widen adds integer to number, since every integer is a number.
func widen(t types) types {
	if t&tNumber != 0 {
		t |= tInteger
	}
	return t
}

// typesOf returns the types that a flat schema allows. Without a type keyword, the other keywords
// decide.
func typesOf(m map[string]any) types {
	if v, ok := m["type"]; ok {
		return typesNamed(v)
	}
	if m["enum"] != nil {
		return tAny
	}
	if _, ok := m["const"]; ok {
		return tAny
	}
	for _, hint := range keywordTypes() {
		for _, k := range hint.keys {
			if _, ok := m[k]; ok {
				return hint.types
			}
		}
	}
	return tString
}

type keywordType struct {
	types types
	keys  []string
}

// keywordTypes returns the types that keywords apply to.
func keywordTypes() []keywordType {
	return []keywordType{
		{tObject, []string{"properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"}},
		{tArray, []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}},
		{tString, []string{"pattern", "minLength", "maxLength", "format"}},
		{tNumber, []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	}
}

func typeOfValue(v any) types {
	switch v := v.(type) {
	case nil:
		return tNull
	case bool:
		return tBool
	case json.Number:
		if x, ok := rat(v); ok && x.IsInt() {
			return tInteger | tNumber
		}
		return tNumber
	case string:
		return tString
	case []any:
		return tArray
	default:
		return tObject
	}
}

// stringsOf decodes a string or a list of strings.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	default:
		return nil
	}
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// countOf decodes a keyword that is a number of things.
func countOf(m map[string]any, key string, otherwise int) int {
	n, ok := m[key].(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxBytes {
		return maxBytes
	}
	return int(f)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// leastHeight returns the nesting of the flattest value of n, from the known heights of its parts.
func (n *node) leastHeight() int {
	if n.never {
		return endless
	}
	if len(n.choices) > 0 {
		least := endless
		for _, c := range n.choices {
			least = min(least, c.height)
		}
		return least
	}
	if len(n.enum) > 0 || n.types&^(tArray|tObject) != 0 {
		return 0
	}
	least := endless
	if n.types&tObject != 0 {
		least = n.objectHeight()
	}
	if n.types&tArray != 0 {
		least = min(least, n.arrayHeight())
	}
	return least
}

func (n *node) objectHeight() int {
	h := 0
	for _, m := range n.members {
		if m.required {
			h = max(h, m.node.height)
		}
	}
	return oneHigher(h)
}

func (n *node) arrayHeight() int {
	h := 0
	for i := range min(n.minItems, len(n.prefix)) {
		h = max(h, n.prefix[i].height)
	}
	if n.minItems > len(n.prefix) && n.items != nil {
		h = max(h, n.items.height)
	}
	if n.contains != nil && n.minContains > 0 {
		h = max(h, n.contains.height)
	}
	return oneHigher(h)
}

func oneHigher(h int) int {
	if h >= endless {
		return endless
	}
	return h + 1
}
