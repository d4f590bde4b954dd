package jsongen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
		return p.pattern.draw(w.r, 0, -1), p.node
	}
	name := w.words.noun(w.r)
	if tries > 20 {
		name += "_" + w.words.noun(w.r)
	}
	if n.names != nil {
		var s []byte
		s = w.value(s, n.names, "", 0)
		name = unquote(s)
	}
	return name, n.additional
}

// text appends a JSON string of n.
func (w *writer) text(dst []byte, n *node, name string) []byte {
	switch {
	case n.pattern != nil:
		return body.Text(dst, n.pattern.draw(w.r, n.minLen, n.maxLen))
	case n.format != "":
		if s, ok := w.formatted(n.format); ok {
			return body.Text(dst, s)
		}
	}
	return body.Text(dst, w.fit(w.phrase(name), n.minLen, n.maxLen))
}

// phrase makes up a string that fits the name of a member.
func (w *writer) phrase(name string) string {
	name = strings.ToLower(name)
	// members whose names have these parts hold whole sentences
	talkative := [...]string{"answer", "analysis", "content", "description", "explanation", "message", "reason", "summary", "text", "thought"}
	for _, t := range talkative {
		if strings.Contains(name, t) {
			return string(w.words.AppendText(nil, w.r, "", 20+w.r.IntN(160)))
		}
	}
	switch {
	case strings.HasSuffix(name, "name") || name == "author":
		return w.words.name(w.r)
	case w.r.IntN(2) == 0:
		return w.words.noun(w.r)
	default:
		return w.words.phrase(w.r)
	}
}

// fit returns s with at least lo and at most hi characters. A negative hi is no limit.
func (w *writer) fit(s string, lo, hi int) string {
	if len(s) < lo {
		b := append([]byte(s), ' ')
		for len(b) < lo {
			b = w.words.AppendText(b, w.r, "", lo-len(b))
		}
		s = string(b)
		if hi < 0 {
			hi = max(lo, len(s))
		}
	}
	if hi < 0 || utf8.RuneCountInString(s) <= hi {
		return s
	}
	cut := s[:hi] // what we make up is ASCII
	if t := strings.TrimRight(cut, " "); len(t) >= lo {
		return t
	}
	return cut
}

// formatted makes up a string in a format.
func (w *writer) formatted(format string) (string, bool) {
	r, l := w.r, w.words
	date := func() string { return fmt.Sprintf("%04d-%02d-%02d", 1990+r.IntN(50), 1+r.IntN(12), 1+r.IntN(28)) }
	clock := func() string { return fmt.Sprintf("%02d:%02d:%02dZ", r.IntN(24), r.IntN(60), r.IntN(60)) }
	host := func() string { return l.noun(r) + ".example" }
	switch format {
	case "date":
		return date(), true
	case "time":
		return clock(), true
	case "date-time":
		return date() + "T" + clock(), true
	case "duration":
		return fmt.Sprintf("P%dDT%dH", r.IntN(30), 1+r.IntN(23)), true
	case "email", "idn-email":
		return strings.ToLower(l.name(r)) + "@" + host(), true
	case "hostname", "idn-hostname":
		return host(), true
	case "ipv4":
		return fmt.Sprintf("192.0.2.%d", r.IntN(256)), true
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", 1+r.IntN(65000)), true
	case "uri", "iri", "url", "uri-reference", "iri-reference":
		return "https://" + host() + "/" + l.noun(r), true
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), 0x8000|r.IntN(1<<14), r.Int64N(1<<48)), true
	case "json-pointer":
		return "/" + l.noun(r) + "/" + l.noun(r), true
	case "relative-json-pointer":
		return fmt.Sprintf("%d/%s", r.IntN(3), l.noun(r)), true
	case "regex":
		return "^" + l.noun(r) + "+$", true
	default:
		return "", false
	}
}

func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return string(b)
	}
	return s
}

// span is the size of a range with only one bound.
const span = 100

// numberRange holds the constraints of a schema on numbers.
type numberRange struct {
	min, max         float64
	hasMin, hasMax   bool
	exclMin, exclMax bool
	step             *big.Rat // multipleOf, or nil
	decimals         int      // of step
}

func rangeOf(m map[string]any) numberRange {
	var n numberRange
	n.min, n.hasMin = floatOf(m["minimum"])
	n.max, n.hasMax = floatOf(m["maximum"])
	if b, ok := m["exclusiveMinimum"].(bool); ok { // as draft 4 spelled it
		n.exclMin = b
	}
	if b, ok := m["exclusiveMaximum"].(bool); ok {
		n.exclMax = b
	}
	if f, ok := floatOf(m["exclusiveMinimum"]); ok && (!n.hasMin || f >= n.min) {
		n.min, n.hasMin, n.exclMin = f, true, true
	}
	if f, ok := floatOf(m["exclusiveMaximum"]); ok && (!n.hasMax || f <= n.max) {
		n.max, n.hasMax, n.exclMax = f, true, true
	}
	if r, ok := rat(m["multipleOf"]); ok && r.Sign() > 0 {
		n.step, n.decimals = r, decimalsOf(r)
	}
	return n
}

func floatOf(v any) (float64, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := num.Float64()
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// decimalsOf returns the number of decimals that represent r exactly. r comes from a decimal, so there
// is one.
func decimalsOf(r *big.Rat) int {
	s := strings.TrimRight(r.FloatString(40), "0")
	return len(s) - 1 - strings.IndexByte(s, '.')
}

// bounds returns the bounds of the range. It makes up missing ones.
func (n *numberRange) bounds() (lo, hi float64) {
	switch {
	case n.hasMin && n.hasMax:
		return n.min, n.max
	case n.hasMin:
		return n.min, n.min + max(span, math.Abs(n.min)/10)
	case n.hasMax && n.max >= 0:
		return math.Max(0, n.max-span), n.max
	case n.hasMax:
		return n.max - span, n.max
	default:
		return 0, span
	}
}

func (n *numberRange) appendInteger(dst []byte, r *rand.Rand) []byte {
	if n.step != nil { // the integers among multiples of p/q are the multiples of p
		return n.appendMultiple(dst, r, new(big.Rat).SetInt(n.step.Num()), 0)
	}
	lo, hi := n.bounds()
	from, to := math.Ceil(lo), math.Floor(hi)
	if n.exclMin && from == lo {
		from++
	}
	if n.exclMax && to == hi {
		to--
	}
	if math.Abs(from) > 1e15 || math.Abs(to) > 1e15 {
		return n.appendMultiple(dst, r, big.NewRat(1, 1), 0)
	}
	k := int64(from)
	if to > from {
		k += r.Int64N(int64(to-from) + 1)
	}
	return strconv.AppendInt(dst, k, 10)
}

func (n *numberRange) appendNumber(dst []byte, r *rand.Rand) []byte {
	if n.step != nil {
		return n.appendMultiple(dst, r, n.step, n.decimals)
	}
	lo, hi := n.bounds()
	decimals := 2
	if width := hi - lo; width > 0 && width < 1 {
		decimals = min(15, 2+int(math.Ceil(-math.Log10(width))))
	}
	scale := math.Pow10(decimals)
	from, to := math.Ceil(lo*scale), math.Floor(hi*scale)
	if n.exclMin && from/scale <= lo {
		from++
	}
	if n.exclMax && to/scale >= hi {
		to--
	}
	v := (lo + hi) / 2
	if to >= from && to-from < 1e17 {
		v = (from + math.Floor(r.Float64()*(to-from+1))) / scale
	}
	if v < lo || v > hi {
		v = lo
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// appendMultiple appends a multiple of step in the range.
func (n *numberRange) appendMultiple(dst []byte, r *rand.Rand, step *big.Rat, decimals int) []byte {
	lo, hi := n.bounds()
	if !n.hasMin || !n.hasMax { // room for a few multiples
		f, _ := step.Float64()
		if n.hasMax {
			lo = math.Min(lo, hi-4*f)
		} else {
			hi = math.Max(hi, lo+4*f)
		}
	}
	from, to := quotient(lo, step, true), quotient(hi, step, false)
	if n.exclMin && onBound(from, step, lo) {
		from.Add(from, big.NewInt(1))
	}
	if n.exclMax && onBound(to, step, hi) {
		to.Sub(to, big.NewInt(1))
	}
	k := from
	if width := new(big.Int).Sub(to, from); width.Sign() > 0 {
		draw := r.Int64()
		if width.IsInt64() && width.Int64() < math.MaxInt64 {
			draw = r.Int64N(width.Int64() + 1)
		}
		k = new(big.Int).Add(from, big.NewInt(draw))
	}
	v := new(big.Rat).Mul(new(big.Rat).SetInt(k), step)
	return append(dst, v.FloatString(decimals)...)
}

// quotient returns bound/step, rounded up or down.
func quotient(bound float64, step *big.Rat, up bool) *big.Int {
	b := new(big.Rat).SetFloat64(bound)
	if d, ok := new(big.Rat).SetString(strconv.FormatFloat(bound, 'f', -1, 64)); ok {
		b = d // the decimal, such as 0.1, not the nearest float
	}
	b.Quo(b, step)
	q, m := new(big.Int).DivMod(b.Num(), b.Denom(), new(big.Int))
	if up && m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func onBound(k *big.Int, step *big.Rat, bound float64) bool {
	f, _ := new(big.Rat).Mul(new(big.Rat).SetInt(k), step).Float64()
	return f == bound
}
