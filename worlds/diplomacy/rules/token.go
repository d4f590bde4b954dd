package rules

import (
	"fmt"
	"strings"
)

// token is a piece of text with its meaning.
type token struct {
	sense sense
	place Location
	raw   string
}

// reader turns lexemes into tokens.
type reader struct {
	b    *Board
	rest []lexeme
	out  []token
}

// tokens finds the meaning of every piece of a text.
func tokens(b *Board, text string) ([]token, error) {
	r := reader{b: b, rest: split(text)}
	for len(r.rest) > 0 {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// step reads one token.
func (r *reader) step() error {
	head := r.rest[0]
	if head.mark != 0 {
		r.rest = r.rest[1:]
		// A dash at the beginning is a bullet; two arrows are one.
		if head.mark == '-' && len(r.out) > 0 && r.out[len(r.out)-1].sense != arrow {
			r.out = append(r.out, token{sense: arrow, raw: "-"})
		}
		return nil
	}
	if coast, used := r.coast(r.rest, true); coast != "" {
		return r.coastFirst(coast, used)
	}
	if len(head.word) > 1 {
		if p, used, ok := r.known(); ok {
			r.stand(p, used)
			return nil
		}
	}
	if meaning := senseOf(head.word); meaning != unknown {
		r.word(head, meaning)
		return nil
	}
	if len(r.out) == 0 && strings.Trim(head.word, "0123456789") == "" {
		r.rest = r.rest[1:] // the number of a list
		return nil
	}
	return r.guess(head)
}

// word reads a word that is not a location.
func (r *reader) word(head lexeme, s sense) {
	r.rest = r.rest[1:]
	n := len(r.out)
	switch {
	case s == filler:
		return
	case s == convoys && n > 0 && r.out[n-1].sense == via, // via convoy
		s == arrow && n > 0 && r.out[n-1].sense == arrow: // moves to
		return
	}
	r.out = append(r.out, token{sense: s, raw: head.raw})
}

// span joins the first n words to a name; an arrow inside it must be a hyphen. It is empty if
// there are fewer words, or if one after the first is an action: RUH R is Ruhr retreating, not
// Ruhr, and Edinburg H holds.
func (r *reader) span(n int) (name string, used int) {
	var join strings.Builder
	for i, l := range r.rest {
		switch {
		case i > 0 && commands(l.word):
			return "", 0
		case l.word != "":
			join.WriteString(l.word)
			if n--; n == 0 {
				return join.String(), i + 1
			}
		case l.mark != '-' || !l.tight:
			return "", 0
		}
	}
	return "", 0
}

// known finds the longest name of a province at the beginning of the rest.
func (r *reader) known() (p Province, used int, ok bool) {
	for n := 4; n > 0; n-- {
		name, used := r.span(n)
		if name == "" {
			continue
		}
		if p, ok := r.b.Find(name); ok {
			return p, used, true
		}
	}
	return 0, 0, false
}

// guess reads a misspelled province, if its meaning is clear.
func (r *reader) guess(head lexeme) error {
	var several []Province
	for n := 3; n > 0; n-- {
		name, used := r.span(n)
		if name == "" || r.means(used) {
			continue
		}
		found := r.b.Guess(name)
		if len(found) == 1 {
			r.stand(found[0], used)
			return nil
		}
		if len(found) > 1 {
			several = found
		}
	}
	if len(several) == 0 {
		return fmt.Errorf("%q is neither a place nor a word of orders", head.raw)
	}
	var names []string
	for _, p := range several[:min(len(several), 4)] {
		names = append(names, r.b.Code(Location(p))+" ("+r.b.Name(p)+")")
	}
	return fmt.Errorf("%q may be any of %s", head.raw, strings.Join(names, ", "))
}

// means reports whether one of the words after the first is a word of orders.
func (r *reader) means(used int) bool {
	for _, l := range r.rest[1:used] {
		if l.word != "" && senseOf(l.word) != unknown {
			return true
		}
	}
	return false
}

// coast reads a coast at the beginning of rest. A direction alone counts only if loose is not
// set: in brackets or after a slash.
func (r *reader) coast(rest []lexeme, loose bool) (coast string, used int) {
	if len(rest) == 0 || rest[0].word == "" {
		return "", 0
	}
	coast, whole := coastOf(rest[0].word)
	if whole {
		return coast, 1
	}
	if coast == "" {
		return "", 0
	}
	if len(rest) > 1 && (rest[1].word == "coast" || rest[1].word == "coastal") {
		return coast, 2
	}
	if len(rest) > 2 && rest[1].tight && rest[2].word == "coast" {
		return coast, 3
	}
	if loose {
		return "", 0
	}
	return coast, 1
}

// coastFirst reads "south coast of Spain".
func (r *reader) coastFirst(coast string, used int) error {
	raw := r.rest[0].raw
	r.rest = r.rest[used:]
	for len(r.rest) > 0 && senseOf(r.rest[0].word) == filler {
		r.rest = r.rest[1:]
	}
	p, used, ok := r.known()
	if !ok {
		return fmt.Errorf("%q: a coast of which place?", raw)
	}
	r.rest = r.rest[used:]
	r.put(p, coast)
	return nil
}

// stand reads a province that used lexemes named, and the coast after it.
func (r *reader) stand(p Province, used int) {
	r.rest = r.rest[used:]
	marked := len(r.rest) > 0 && r.rest[0].mark != 0
	behind := r.rest
	if marked {
		behind = behind[1:]
	}
	coast, used := r.coast(behind, !marked || r.rest[0].mark != '/')
	if coast != "" && marked {
		used++
	}
	r.rest = r.rest[used:]
	r.put(p, coast)
}

// put adds a location. It ignores a coast that the province does not have: people write LON/EC.
func (r *reader) put(p Province, coast string) {
	at, ok := r.b.ByCode(r.b.Code(Location(p)) + coast)
	if !ok {
		at = Location(p)
	}
	r.out = append(r.out, token{sense: place, place: at, raw: r.b.Code(at)})
}
