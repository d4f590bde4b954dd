package jsongen

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
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
	pattern        *jsongenPattern
	format         string

	height int // the minimum nesting of a value, or endless
}

type member struct {
	name     string
	node     *node
	required bool
}

type patternMember struct {
	pattern *jsongenPattern
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
	n.minLen, n.maxLen = count(m, "minLength", 0), count(m, "maxLength", -1)
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
	n.minItems, n.maxItems = count(m, "minItems", 0), count(m, "maxItems", -1)
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
		n.minContains = count(m, "minContains", 1)
		n.contains, err = c.build(s, depth+1)
	}
	return err
}

func (c *compiler) fillObject(n *node, m map[string]any, depth int) error {
	n.minMembers, n.maxMembers = count(m, "minProperties", 0), count(m, "maxProperties", -1)
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
