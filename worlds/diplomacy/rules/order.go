package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Kind is the kind of an order.
type Kind uint8

// The kinds of orders.
const (
	Hold Kind = iota
	Move
	Support // a unit that stays, or one that moves
	Convoy
	Retreat
	Disband
	Build
	Waive // a build that is not used
)

// String returns the kind in a word.
func (k Kind) String() string {
	return [...]string{"hold", "move", "support", "convoy", "retreat", "disband", "build", "waive"}[min(k, Waive)]
}

// Order is one order. Until it is checked against a position, types may be AnyType and
// locations may lack a coast.
type Order struct {
	Kind Kind

	// Via means that an army moves by convoy even if it could walk.
	Via bool

	// Type and At are the unit that is ordered. Waive needs neither; in a list of legal orders
	// its At is the centre that stays empty.
	Type Type
	At   Location

	// OfType and Of are the unit that is supported or carried.
	OfType Type
	Of     Location

	// To is where a unit moves, or is supported or carried to. For the support of a unit that
	// holds it is Nowhere.
	To Location
}

// NewOrder returns an order with no location except the unit's.
func NewOrder(k Kind, t Type, at Location) Order {
	return Order{Kind: k, Type: t, At: at, Of: Nowhere, To: Nowhere}
}

// Text writes the order in the notation of the Python package diplomacy: A PAR - BUR,
// F STP/SC S F BOT, A LON - NWY VIA, A PAR R BUR, F BRE B, WAIVE.
func (o Order) Text(b *Board) string { return string(o.Append(nil, b)) }

// Append adds the order's text to buf.
func (o Order) Append(buf []byte, b *Board) []byte {
	if o.Kind == Waive {
		return append(buf, "WAIVE"...)
	}
	buf = appendUnit(buf, b, o.Type, o.At)
	switch o.Kind {
	case Hold:
		return append(buf, " H"...)
	case Disband:
		return append(buf, " D"...)
	case Build:
		return append(buf, " B"...)
	case Retreat:
		return append(append(buf, " R "...), b.Code(o.To)...)
	case Support:
		buf = appendUnit(append(buf, " S "...), b, o.OfType, o.Of)
	case Convoy:
		buf = appendUnit(append(buf, " C "...), b, o.OfType, o.Of)
	}
	if o.To != Nowhere {
		buf = append(append(buf, " - "...), b.Code(o.To)...)
	}
	if o.Via {
		buf = append(buf, " VIA"...)
	}
	return buf
}

func appendUnit(buf []byte, b *Board, t Type, at Location) []byte {
	if t != AnyType {
		buf = append(append(buf, t.String()...), ' ')
	}
	return append(buf, b.Code(at)...)
}

// maxOrderText is longer than any order.
const maxOrderText = 200

// Parse reads an order as people and models write it: any case, full names, other names and near
// misses of them, arrows, brackets, words for letters, a unit's type or a coast left out. It never
// guesses between two meanings. Whether the order is legal depends on a position: see Rules.Check.
func Parse(b *Board, text string) (Order, error) {
	o, err := parseOrder(b, text)
	if err != nil {
		if len(text) > maxOrderText {
			text = text[:40] + "…"
		}
		return Order{}, fmt.Errorf("order: %q: %w", text, err)
	}
	return o, nil
}

// ParseUnit reads a unit: A PAR, F STP/SC.
func ParseUnit(b *Board, text string) (Type, Location, error) {
	if len(text) > maxOrderText {
		return 0, 0, errors.New("order: a unit of far too many letters")
	}
	toks, err := tokens(b, text)
	if err == nil {
		p := parser{rest: toks}
		t, at, found := p.unit()
		if found && t != AnyType && len(p.rest) == 0 {
			return t, at, nil
		}
		err = errors.New("a unit is A or F and a place: A PAR, F STP/SC")
	}
	return 0, 0, fmt.Errorf("order: %q: %w", text, err)
}

// ParseLocation reads a location: PAR, STP/SC.
func ParseLocation(b *Board, text string) (Location, error) {
	if len(text) > maxOrderText {
		return 0, errors.New("order: a place of far too many letters")
	}
	toks, err := tokens(b, text)
	if err == nil {
		if len(toks) == 1 && toks[0].sense == sensePlace {
			return toks[0].place, nil
		}
		err = errors.New("that is no place: PAR, STP/SC")
	}
	return 0, fmt.Errorf("order: %q: %w", text, err)
}

// parser reads an order from tokens, left to right.
type parser struct {
	rest []token
}

func parseOrder(b *Board, text string) (Order, error) {
	if len(text) > maxOrderText {
		return Order{}, fmt.Errorf("longer than %d bytes", maxOrderText)
	}
	toks, err := tokens(b, text)
	if err != nil {
		return Order{}, err
	}
	p := parser{rest: toks}
	if p.take(senseWaive) {
		return NewOrder(Waive, AnyType, Nowhere), nil
	}
	lead := senseUnknown
	for _, s := range []sense{senseBuild, senseDisband, senseRetreat, senseHold} {
		if p.take(s) {
			lead = s
			break
		}
	}
	t, at, ok := p.unit()
	if !ok {
		return Order{}, errors.New("it does not say which unit: begin like A PAR or F BRE")
	}
	o, err := p.action(NewOrder(Hold, t, at), lead)
	if err != nil {
		return Order{}, err
	}
	if len(p.rest) > 0 {
		return Order{}, fmt.Errorf("%q is too much", p.rest[0].raw)
	}
	return o, nil
}

// action reads the action of the unit of o. lead is a verb before the unit, or unknown.
func (p *parser) action(o Order, lead sense) (Order, error) {
	switch {
	case lead == senseHold || p.take(senseHold):
		return o, nil
	case lead == senseBuild || p.take(senseBuild):
		o.Kind = Build
		return o, nil
	case lead == senseDisband || p.take(senseDisband):
		o.Kind = Disband
		return o, nil
	case lead == senseRetreat || p.take(senseRetreat):
		o.Kind = Retreat
		return p.target(o)
	case p.take(senseSupport):
		o.Kind = Support
		return p.support(o)
	case p.take(senseConvoy):
		if p.peek() == senseMove || len(p.rest) == 0 {
			o.Via = true // A LON convoys to NWY
			return p.move(o)
		}
		o.Kind = Convoy
		return p.convoy(o)
	}
	return p.move(o)
}

func (p *parser) support(o Order) (Order, error) {
	var ok bool
	if o.OfType, o.Of, ok = p.unit(); !ok {
		return o, errors.New("it does not say which unit is supported")
	}
	moves := p.take(senseMove)
	if p.take(senseHold) || !moves {
		return o, nil
	}
	o, err := p.target(o)
	p.byConvoy()
	return o, err
}

func (p *parser) convoy(o Order) (Order, error) {
	var ok bool
	if o.OfType, o.Of, ok = p.unit(); !ok {
		return o, errors.New("it does not say which army is carried")
	}
	o, err := p.target(o)
	p.byConvoy()
	return o, err
}

// move reads a move, which may name the seas it goes over.
func (p *parser) move(o Order) (Order, error) {
	o.Kind = Move
	if p.byConvoy() {
		o.Via = true
	}
	if p.peek() != senseMove {
		return o, errors.New("it does not say what the unit is to do: H, - BUR, S A MAR - BUR, C A LON - NWY, R BUR, D or B")
	}
	o, err := p.target(o)
	for err == nil && p.peek() == senseMove {
		o.Via = true
		o, err = p.target(o)
	}
	if p.byConvoy() {
		o.Via = true
	}
	return o, err
}

// byConvoy reads "via", "via convoy" or "convoy", and the seas after it.
func (p *parser) byConvoy() bool {
	if !p.take(senseVia) && !p.take(senseConvoy) {
		return false
	}
	for p.peek() == sensePlace {
		p.rest = p.rest[1:]
	}
	return true
}

// target reads where a unit moves.
func (p *parser) target(o Order) (Order, error) {
	p.take(senseMove)
	if p.peek() != sensePlace {
		return o, errors.New("it does not say where to")
	}
	o.To = p.rest[0].place
	p.rest = p.rest[1:]
	return o, nil
}

// unit reads a unit, whose type may be missing. If there are several types, the last counts:
// in "a fleet", the first is an article.
func (p *parser) unit() (t Type, at Location, ok bool) {
	for {
		switch p.peek() {
		case senseArmy:
			t = Army
		case senseFleet:
			t = Fleet
		case sensePlace:
			at = p.rest[0].place
			p.rest = p.rest[1:]
			return t, at, true
		default:
			return t, Nowhere, false
		}
		p.rest = p.rest[1:]
	}
}

func (p *parser) peek() sense {
	if len(p.rest) == 0 {
		return senseUnknown
	}
	return p.rest[0].sense
}

func (p *parser) take(s sense) bool {
	if p.peek() != s {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// token is a piece of text with its meaning.
type token struct {
	sense sense
	place Location
	raw   string
}

// tokenizer turns lexemes into tokens.
type tokenizer struct {
	b    *Board
	rest []lexeme
	out  []token
}

// tokens finds the meaning of every piece of a text.
func tokens(b *Board, text string) ([]token, error) {
	r := tokenizer{b: b, rest: lexemes(text)}
	for len(r.rest) > 0 {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// step reads one token.
func (r *tokenizer) step() error {
	head := r.rest[0]
	if head.mark != 0 {
		r.rest = r.rest[1:]
		// A dash at the beginning is a bullet; two arrows are one.
		if head.mark == '-' && len(r.out) > 0 && r.out[len(r.out)-1].sense != senseMove {
			r.out = append(r.out, token{sense: senseMove, raw: "-"})
		}
		return nil
	}
	if coast, used := r.coast(r.rest, true); coast != "" {
		return r.coastFirst(coast, used)
	}
	if len(head.word) > 1 {
		if p, used, ok := r.known(); ok {
			r.readProvince(p, used)
			return nil
		}
	}
	if meaning := senseOf(head.word); meaning != senseUnknown {
		r.readWord(head, meaning)
		return nil
	}
	if len(r.out) == 0 && strings.Trim(head.word, "0123456789") == "" {
		r.rest = r.rest[1:] // the number of a list
		return nil
	}
	return r.guess(head)
}

// readWord reads a word that is not a location.
func (r *tokenizer) readWord(head lexeme, s sense) {
	r.rest = r.rest[1:]
	n := len(r.out)
	switch {
	case s == senseFiller:
		return
	case s == senseConvoy && n > 0 && r.out[n-1].sense == senseVia, // via convoy
		s == senseMove && n > 0 && r.out[n-1].sense == senseMove: // moves to
		return
	}
	r.out = append(r.out, token{sense: s, raw: head.raw})
}

// joinWords joins the first n words to a name; an arrow inside it must be a hyphen. It is empty if
// there are fewer words, or if one after the first is an action: RUH R is Ruhr retreating, not
// Ruhr, and Edinburg H holds.
func (r *tokenizer) joinWords(n int) (name string, used int) {
	var join strings.Builder
	for i, l := range r.rest {
		switch {
		case i > 0 && isAction(l.word):
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
func (r *tokenizer) known() (p Province, used int, ok bool) {
	for n := 4; n > 0; n-- {
		name, used := r.joinWords(n)
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
func (r *tokenizer) guess(head lexeme) error {
	var several []Province
	for n := 3; n > 0; n-- {
		name, used := r.joinWords(n)
		if name == "" || r.hasOrderWord(used) {
			continue
		}
		found := r.b.Guess(name)
		if len(found) == 1 {
			r.readProvince(found[0], used)
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

// hasOrderWord reports whether one of the words after the first is a word of orders.
func (r *tokenizer) hasOrderWord(used int) bool {
	for _, l := range r.rest[1:used] {
		if l.word != "" && senseOf(l.word) != senseUnknown {
			return true
		}
	}
	return false
}

// coast reads a coast at the beginning of rest. A direction alone counts only if loose is not
// set: in brackets or after a slash.
func (r *tokenizer) coast(rest []lexeme, loose bool) (coast string, used int) {
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
func (r *tokenizer) coastFirst(coast string, used int) error {
	raw := r.rest[0].raw
	r.rest = r.rest[used:]
	for len(r.rest) > 0 && senseOf(r.rest[0].word) == senseFiller {
		r.rest = r.rest[1:]
	}
	p, used, ok := r.known()
	if !ok {
		return fmt.Errorf("%q: a coast of which place?", raw)
	}
	r.rest = r.rest[used:]
	r.addLocation(p, coast)
	return nil
}

// readProvince reads a province that used lexemes named, and the coast after it.
func (r *tokenizer) readProvince(p Province, used int) {
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
	r.addLocation(p, coast)
}

// addLocation adds a location. It ignores a coast that the province does not have: people write LON/EC.
func (r *tokenizer) addLocation(p Province, coast string) {
	at, ok := r.b.ByCode(r.b.Code(Location(p)) + coast)
	if !ok {
		at = Location(p)
	}
	r.out = append(r.out, token{sense: sensePlace, place: at, raw: r.b.Code(at)})
}

// A lexeme is a piece of text before it means anything: a folded word or a mark.
type lexeme struct {
	word  string // empty for marks
	raw   string // the word as it was written
	mark  rune   // '-' for arrows of any kind, '/' for marks before a coast
	tight bool   // a mark without space around it
}

// lexemes cuts text into words and the marks that mean something.
func lexemes(text string) []lexeme {
	var out []lexeme
	runes := []rune(text)
	for i := 0; i < len(runes); {
		switch r := runes[i]; {
		case inWord(r):
			j := i
			for j < len(runes) && (inWord(runes[j]) || isApostrophe(runes[j])) {
				j++
			}
			raw := string(runes[i:j])
			if word := fold(raw); word != "" {
				out = append(out, lexeme{word: word, raw: raw})
			} else {
				out = append(out, lexeme{word: "?", raw: raw})
			}
			i = j
		case strings.ContainsRune("-–—−‐‑→⇒➔➜➡>=~", r):
			tight := i > 0 && inWord(runes[i-1]) && i+1 < len(runes) && inWord(runes[i+1])
			if n := len(out); n == 0 || out[n-1].mark != '-' {
				out = append(out, lexeme{mark: '-', tight: tight})
			}
			i++
		case r == '/' || r == '(' || r == '[' || r == '\\':
			out = append(out, lexeme{mark: '/'})
			i++
		default:
			i++
		}
	}
	return out
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == '`' }

// sense is the meaning of a token in an order.
type sense uint8

const (
	senseUnknown sense = iota
	senseFiller        // no meaning
	senseArmy
	senseFleet
	senseMove
	senseHold
	senseSupport
	senseConvoy
	senseRetreat
	senseDisband
	senseBuild
	senseWaive
	senseVia
	sensePlace
)

// senseOf returns the sense of a word that is not a location.
func senseOf(word string) sense {
	switch word {
	case "a", "army", "armies", "amy", "arm":
		return senseArmy
	case "f", "fleet", "fleets", "flt", "navy":
		return senseFleet
	case "to", "into", "onto", "towards", "toward", "against", "m", "mto", "mv", "move", "moves", "moving", "movement",
		"advance", "advances", "attack", "attacks", "attacking", "goes", "go":
		return senseMove
	case "h", "hld", "hold", "holds", "holding", "stand", "stands", "stay", "stays":
		return senseHold
	case "s", "sup", "support", "supports", "supporting", "spt":
		return senseSupport
	case "c", "cvy", "convoy", "convoys", "convoying", "transport", "transports":
		return senseConvoy
	case "r", "rto", "retreat", "retreats", "retreating", "withdraw", "withdraws":
		return senseRetreat
	case "d", "dsb", "rem", "disband", "disbands", "disbanded", "remove", "removes", "removed", "destroy", "destroyed":
		return senseDisband
	case "b", "bld", "build", "builds", "building":
		return senseBuild
	case "w", "wve", "waive", "waives", "waived":
		return senseWaive
	case "v", "via", "ctb", "cto", "convoyed":
		return senseVia
	case "the", "from", "in", "at", "on", "of", "its", "it", "my", "our", "your", "their", "unit", "order", "orders", "with", "please", "and":
		return senseFiller
	}
	if _, ok := ParsePower(word); ok {
		return senseFiller
	}
	return senseUnknown
}

// isAction reports whether a word is a word of orders, and so never part of a name. Fillers may
// be: Gulf of the Lion.
func isAction(word string) bool {
	s := senseOf(word)
	return s != senseUnknown && s != senseFiller
}

// coastOf reads a coast out of a word: NC, or a direction.
func coastOf(word string) (coast string, whole bool) {
	switch word {
	case "nc", "northcoast":
		return "/NC", true
	case "sc", "southcoast":
		return "/SC", true
	case "ec", "eastcoast":
		return "/EC", true
	case "wc", "westcoast":
		return "/WC", true
	case "n", "north", "northern":
		return "/NC", false
	case "s", "south", "southern":
		return "/SC", false
	case "e", "east", "eastern":
		return "/EC", false
	case "w", "west", "western":
		return "/WC", false
	}
	return "", false
}
