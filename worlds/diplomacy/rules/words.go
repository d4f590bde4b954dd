package rules

import (
	"strings"
	"unicode"
)

// A lexeme is a piece of text before it means anything: a folded word or a mark.
type lexeme struct {
	word  string // empty for marks
	raw   string // the word as it was written
	mark  rune   // '-' for arrows of any kind, '/' for marks before a coast
	tight bool   // a mark without space around it
}

// split cuts text into words and the marks that mean something.
func split(text string) []lexeme {
	var out []lexeme
	runes := []rune(text)
	for i := 0; i < len(runes); {
		switch r := runes[i]; {
		case inWord(r):
			j := i
			for j < len(runes) && (inWord(runes[j]) || apostrophe(runes[j])) {
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

func apostrophe(r rune) bool { return r == '\'' || r == '’' || r == '`' }

// sense is the meaning of a token in an order.
type sense uint8

const (
	unknown sense = iota
	filler        // no meaning
	armyWord
	fleetWord
	arrow
	holds
	supports
	convoys
	retreats
	disbands
	builds
	waives
	via
	place
)

// senseOf returns the sense of a word that is not a location.
func senseOf(word string) sense {
	switch word {
	case "a", "army", "armies", "amy", "arm":
		return armyWord
	case "f", "fleet", "fleets", "flt", "navy":
		return fleetWord
	case "to", "into", "onto", "towards", "toward", "against", "m", "mto", "mv", "move", "moves", "moving", "movement",
		"advance", "advances", "attack", "attacks", "attacking", "goes", "go":
		return arrow
	case "h", "hld", "hold", "holds", "holding", "stand", "stands", "stay", "stays":
		return holds
	case "s", "sup", "support", "supports", "supporting", "spt":
		return supports
	case "c", "cvy", "convoy", "convoys", "convoying", "transport", "transports":
		return convoys
	case "r", "rto", "retreat", "retreats", "retreating", "withdraw", "withdraws":
		return retreats
	case "d", "dsb", "rem", "disband", "disbands", "disbanded", "remove", "removes", "removed", "destroy", "destroyed":
		return disbands
	case "b", "bld", "build", "builds", "building":
		return builds
	case "w", "wve", "waive", "waives", "waived":
		return waives
	case "v", "via", "ctb", "cto", "convoyed":
		return via
	case "the", "from", "in", "at", "on", "of", "its", "it", "my", "our", "your", "their", "unit", "order", "orders", "with", "please", "and":
		return filler
	}
	if _, ok := ParsePower(word); ok {
		return filler
	}
	return unknown
}

// commands reports whether a word is a word of orders, and so never part of a name. Fillers may
// be: Gulf of the Lion.
func commands(word string) bool {
	s := senseOf(word)
	return s != unknown && s != filler
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
