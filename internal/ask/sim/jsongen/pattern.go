package jsongen

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// pattern is a regular expression, from which strings are drawn.
type pattern struct {
	tree *syntax.Regexp
	re   *regexp.Regexp
}

// newPattern compiles a pattern. It returns nil if Go does not support the expression.
func newPattern(s string) *pattern {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil
	}
	return &pattern{tree: tree, re: re}
}

// draw returns a string that matches p, with lo to hi characters if possible. A negative hi is no
// limit. The string depends only on p and r, and is bounded. It may fail to match an expression with
// boundaries that are hard to satisfy.
func (p *pattern) draw(r *rand.Rand, lo, hi int) string {
	s := ""
	far := max(hi, 2*lo)
	for try := range 48 {
		d := drawer{r: r, more: 1 + try%8, limit: 1 << 16}
		if try > 4 && lo > 0 { // repeat more often to reach lo
			d.more = min(far, d.limit)/(1+try%4) + 1
			d.least = d.more / 2
		}
		d.write(p.tree)
		s = string(d.out)
		n := utf8.RuneCountInString(s)
		if n >= lo && (hi < 0 || n <= hi) && p.re.MatchString(s) {
			return s
		}
	}
	return s
}

// drawer writes a string for a syntax tree.
type drawer struct {
	r     *rand.Rand
	out   []byte
	more  int // maximum repetitions beyond the minimum of an operator
	least int // minimum of these
	limit int
}

func (d *drawer) write(re *syntax.Regexp) {
	if len(d.out) > d.limit {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			d.out = utf8.AppendRune(d.out, c)
		}
	case syntax.OpCharClass:
		d.out = utf8.AppendRune(d.out, d.fromClass(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		d.out = append(d.out, byte('a'+d.r.IntN(26)))
	case syntax.OpCapture:
		d.write(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			d.write(sub)
		}
	case syntax.OpAlternate:
		d.write(re.Sub[d.r.IntN(len(re.Sub))])
	case syntax.OpStar:
		d.repeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		d.repeat(re.Sub[0], 1, -1)
	case syntax.OpQuest:
		d.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		d.repeat(re.Sub[0], re.Min, re.Max)
	default: // anchors and boundaries write nothing; draw checks the match
	}
}

func (d *drawer) repeat(re *syntax.Regexp, lo, hi int) {
	if hi < 0 {
		hi = lo + d.more
	}
	more := min(hi-lo, d.more)
	least := min(d.least, more)
	for range lo + least + d.r.IntN(more-least+1) {
		d.write(re)
	}
}

// fromClass returns a random character of a class, printable ASCII if possible.
func (d *drawer) fromClass(ranges []rune) rune {
	total := 0
	for i := 0; i+1 < len(ranges); i += 2 {
		if lo, hi := max(ranges[i], ' '), min(ranges[i+1], '~'); lo <= hi {
			total += int(hi-lo) + 1
		}
	}
	if total == 0 {
		if len(ranges) == 0 {
			return 'x'
		}
		return ranges[0]
	}
	k := d.r.IntN(total)
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := max(ranges[i], ' '), min(ranges[i+1], '~')
		if lo > hi {
			continue
		}
		if size := int(hi-lo) + 1; k >= size {
			k -= size
			continue
		}
		return lo + rune(k)
	}
	return 'x'
}
