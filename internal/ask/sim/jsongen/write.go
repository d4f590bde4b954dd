package jsongen

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"

	"parley/internal/ask/wire/body"
)

// maxDepth is the depth from which values are as flat as their schema allows.
const maxDepth = 6

// writer draws one value.
type writer struct {
	r        *rand.Rand
	words    *Lexicon
	limit    int  // of the buffer's length
	anything node // for the elements of a list without items
}

// value appends a value of n. name is the name of its member.
func (w *writer) value(dst []byte, n *node, name string, depth int) []byte {
	for len(n.choices) > 0 {
		n = w.choose(n.choices, depth)
	}
	switch {
	case depth > maxNested || len(dst) > w.limit:
		return append(dst, "null"...)
	case len(n.enum) > 0:
		return append(dst, n.enum[w.r.IntN(len(n.enum))]...)
	}
	switch w.pickType(n, depth) {
	case tNull:
		return append(dst, "null"...)
	case tBool:
		if w.r.IntN(2) == 0 {
			return append(dst, "false"...)
		}
		return append(dst, "true"...)
	case tInteger:
		return n.num.appendInteger(dst, w.r)
	case tNumber:
		return n.num.appendNumber(dst, w.r)
	case tArray:
		return w.array(dst, n, name, depth)
	case tObject:
		return w.object(dst, n, depth)
	default:
		return w.text(dst, n, name)
	}
}

// choose returns a random branch that can end, or the flattest if depth is large.
func (w *writer) choose(choices []*node, depth int) *node {
	if depth >= maxDepth {
		return slices.MinFunc(choices, func(a, b *node) int { return a.height - b.height })
	}
	i := w.r.IntN(len(choices))
	for range choices {
		if choices[i].height < endless {
			break
		}
		i = (i + 1) % len(choices)
	}
	return choices[i]
}

func (w *writer) pickType(n *node, depth int) types {
	t := n.types
	if flat := t &^ (tArray | tObject); flat != 0 && depth >= maxDepth {
		t = flat
	}
	if t&tNull != 0 && t != tNull && w.r.IntN(4) > 0 && (depth < maxDepth || t&^(tArray|tObject|tNull) != 0) {
		t &^= tNull // null is allowed, but rarely useful
	}
	if t == 0 {
		return tString
	}
	for k := w.r.IntN(bits.OnesCount8(uint8(t))); k > 0; k-- {
		t &= t - 1
	}
	return t & -t
}

func (w *writer) array(dst []byte, n *node, name string, depth int) []byte {
	size := w.arraySize(n, depth)
	dst = append(dst, '[')
	var seen [][]byte
	must := 0
	if n.contains != nil {
		must = n.minContains
	}
	for i, tries := 0, 0; i < size && len(dst) < w.limit; {
		start := len(dst)
		if i > 0 {
			dst = append(dst, ',')
		}
		from := len(dst)
		dst = w.value(dst, w.item(n, i, must), name, depth+1)
		if n.unique {
			if item := dst[from:]; !slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, item) }) {
				seen = append(seen, bytes.Clone(item))
			} else if tries++; tries < 50 {
				dst = dst[:start]
				continue
			} else if i >= n.minItems {
				dst = dst[:start]
				break
			}
		}
		i, tries = i+1, 0
	}
	return append(dst, ']')
}

// item returns the schema of n's item i. The first must items satisfy contains.
func (w *writer) item(n *node, i, must int) *node {
	switch {
	case i < len(n.prefix):
		return n.prefix[i]
	case i-len(n.prefix) < must:
		return n.contains
	case n.items != nil:
		return n.items
	default:
		return &w.anything
	}
}

func (w *writer) arraySize(n *node, depth int) int {
	lo := max(n.minItems, 0)
	if n.contains != nil {
		lo = max(lo, len(n.prefix)+n.minContains)
	}
	open := n.items == nil || n.items.height < endless
	hi := lo + 3
	if len(n.prefix) > 0 && lo <= len(n.prefix) {
		lo, hi = max(lo, min(len(n.prefix), hi)), len(n.prefix)
		if n.items != nil && open {
			hi += 2
		}
	}
	if n.maxItems >= 0 {
		hi = min(hi, n.maxItems)
	}
	if !open {
		hi = min(hi, len(n.prefix))
	}
	if depth >= maxDepth {
		hi = max(n.minItems, 0)
	}
	lo = min(lo, hi)
	if lo == 0 && hi > 0 && w.r.IntN(8) > 0 {
		lo = 1 // an empty list is allowed, but rarely useful
	}
	return lo + w.r.IntN(hi-lo+1)
}

func (w *writer) object(dst []byte, n *node, depth int) []byte {
	names := w.memberNames(n, depth)
	dst = append(dst, '{')
	size := 0
	for i := range n.members {
		m := &n.members[i]
		if !names[i] {
			continue
		}
		dst = w.member(dst, m.name, m.node, size, depth)
		size++
	}
	return append(w.extras(dst, n, size, depth), '}')
}

func (w *writer) member(dst []byte, name string, n *node, before, depth int) []byte {
	if before > 0 {
		dst = append(dst, ',')
	}
	dst = append(body.Text(dst, name), ':')
	return w.value(dst, n, name, depth+1)
}

// memberNames returns which of n's members are written.
func (w *writer) memberNames(n *node, depth int) []bool {
	chosen := make([]bool, len(n.members))
	size := 0
	for i, m := range n.members {
		chosen[i] = m.required
		if m.required {
			size++
		}
	}
	start := 0
	if n.minMembers > size { // so that it is not always the first ones
		start = w.r.IntN(len(n.members) + 1)
	}
	for k := range n.members {
		i := (start + k) % len(n.members)
		m := &n.members[i]
		full := n.maxMembers >= 0 && size >= n.maxMembers
		if chosen[i] || full || m.node.height >= endless {
			continue
		}
		if size < n.minMembers || (depth < maxDepth && w.r.IntN(10) < 7) {
			chosen[i] = true
			size++
		}
	}
	for range n.members {
		if !n.addDependent(chosen) {
			break
		}
	}
	return chosen
}

// addDependent adds the members that chosen ones require, and reports whether it added any.
func (n *node) addDependent(chosen []bool) bool {
	added := false
	for i, m := range n.members {
		if !chosen[i] {
			continue
		}
		for _, want := range n.dependent[m.name] {
			j := slices.IndexFunc(n.members, func(m member) bool { return m.name == want })
			if j >= 0 && !chosen[j] {
				chosen[j], added = true, true
			}
		}
	}
	return added
}

// extras adds members that the schema does not name, if it wants some.
func (w *writer) extras(dst []byte, n *node, size, depth int) []byte {
	want := n.minMembers - size
	mapping := len(n.members) == 0 && n.additional != nil && n.additional.height < endless
	if mapping && depth < maxDepth {
		want = max(want, 1+w.r.IntN(3))
	}
	if len(n.patterns) > 0 && depth < maxDepth {
		want = max(want, 1)
	}
	if n.maxMembers >= 0 {
		want = min(want, n.maxMembers-size)
	}
	used := map[string]bool{}
	for tries := 0; want > 0 && tries < 200 && len(dst) < w.limit; tries++ {
		name, value := w.extraName(n, tries)
		if value == nil || value.height >= endless || used[name] || n.has(name) {
			continue
		}
		used[name] = true
		dst = w.member(dst, name, value, size, depth)
		size++
		want--
	}
	return dst
}

func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

// extraName returns a name for an extra member, and the schema of its value.
func (w *writer) extraName(n *node, tries int) (string, *node) {
	if len(n.patterns) > 0 && (n.additional == nil || n.additional.never || w.r.IntN(2) == 0) {
		p := n.patterns[w.r.IntN(len(n.patterns))]
		return p.pattern.Draw(w.r, 0, -1), p.node
	}
	name := w.words.Word(w.r)
	if tries > 20 {
		name += "_" + w.words.Word(w.r)
	}
	if n.names != nil {
		var s []byte
		s = w.value(s, n.names, "", 0)
		name = unquote(s)
	}
	return name, n.additional
}
