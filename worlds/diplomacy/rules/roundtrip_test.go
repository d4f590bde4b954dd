package rules

import (
	"slices"
	"strings"
	"testing"
)

// written is a location in one of its spellings.
type written struct {
	at   Location
	text string
}

// spelled lists every location in every spelling of its name and its coast.
func spelled(b *Board) []written {
	coasts := map[string][]string{
		"NC": {"/NC", "(nc)", " NC", " (north coast)", " north coast", "/n", "-nc", " Northern Coast", " [NC]"},
		"SC": {"/SC", "(sc)", " SC", " (south coast)", " south coast", "/s", "-sc", " Southern Coast", " [SC]"},
		"EC": {"/EC", "(ec)", " EC", " (east coast)", " east coast", "/e", "-ec", " Eastern Coast", " [EC]"},
	}
	var all []written
	for at := range Location(Locations) {
		names := b.Spellings(b.Province(at))
		_, coast, has := strings.Cut(b.Code(at), "/")
		for _, name := range names {
			if !has {
				all = append(all, written{at, name})
				continue
			}
			for _, c := range coasts[coast] {
				all = append(all, written{at, name + c})
			}
		}
	}
	return all
}

// codes lists every location by its code.
func codes(b *Board) []written {
	var all []written
	for at := range Location(Locations) {
		all = append(all, written{at, b.Code(at)})
	}
	return all
}

// reads checks that a text is parsed as an order, also in lower and upper case.
func reads(t *testing.T, b *Board, text string, want Order) {
	t.Helper()
	for _, text := range []string{text, strings.ToLower(text), strings.ToUpper(text)} {
		if got, err := Parse(b, text); err != nil || got != want {
			t.Errorf("%q is parsed as %q, want %q: %v", text, got.Text(b), want.Text(b), err)
		}
	}
}

// units lists the ways to write a unit of a type.
func units(kind Type) []string {
	return map[Type][]string{
		boardAny: {""}, Army: {"A ", "army ", "the army in "}, Fleet: {"F ", "fleet ", "the fleet at "},
	}[kind]
}

// TestEveryOrderIsReadAsWritten writes and parses every order of one or two locations, and supports
// and convoys with every pair of locations.
func TestEveryOrderIsReadAsWritten(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	bur, _ := b.ByCode("BUR")
	same := func(o Order) {
		if got, err := Parse(b, o.Text(b)); err != nil || got != o {
			t.Errorf("%q is parsed as %q: %v", o.Text(b), got.Text(b), err)
		}
	}
	for _, kind := range []Type{boardAny, Army, Fleet} {
		for _, at := range codes(b) {
			for _, k := range []Kind{Hold, Disband, Build} {
				same(NewOrder(k, kind, at.at))
			}
			for _, to := range codes(b) {
				for _, o := range []Order{
					{Kind: Move, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Move, Via: true, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Retreat, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Support, At: at.at, Of: to.at, To: Nowhere},
					{Kind: Support, At: bur, Of: at.at, To: to.at},
					{Kind: Support, At: at.at, Of: to.at, To: bur},
					{Kind: Support, At: at.at, Of: bur, To: to.at},
					{Kind: Convoy, At: bur, Of: at.at, To: to.at},
					{Kind: Convoy, At: at.at, Of: to.at, To: bur},
				} {
					o.Type = kind
					if o.Of != Nowhere {
						o.OfType = kind
					}
					same(o)
				}
			}
		}
	}
	same(NewOrder(Waive, boardAny, Nowhere))
}

// TestEveryRetreatIsRead checks retreats between all locations, with one of the two in every spelling.
func TestEveryRetreatIsRead(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for i, at := range spelled(b) {
		for j, to := range codes(b) {
			kind := []Type{boardAny, Army, Fleet}[(i+j)%3]
			unit := units(kind)[(i+j)/3%len(units(kind))]
			away := Order{Kind: Retreat, Type: kind, At: at.at, Of: Nowhere, To: to.at}
			reads(t, b, unit+at.text+" R "+to.text, away)
			back := Order{Kind: Retreat, Type: kind, At: to.at, Of: Nowhere, To: at.at}
			reads(t, b, unit+to.text+" R "+at.text, back)
		}
	}
}

// TestEveryWordBehindEveryName checks that no name is joined with the word of the order after it.
func TestEveryWordBehindEveryName(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	mun, _ := b.ByCode("MUN")
	alone := map[Kind][]string{
		Hold: {"H", "HLD", "holds", "stands", "stay"}, Disband: {"D", "DSB", "REM", "disbands", "removed"}, Build: {"B", "BLD", "builds"},
	}
	first := map[Kind][]string{
		Hold: {"hold"}, Disband: {"disband", "remove", "D"}, Build: {"build", "B"}, Retreat: {"retreat", "withdraw", "R"},
	}
	to := map[Kind][]string{
		Move:    {" - ", "-", "->", " → ", " – ", " to ", " M ", " moves to ", " attacks ", " MTO "},
		Retreat: {" R ", " r - ", " RTO ", " retreats to ", " R -> ", " withdraws to "},
	}
	of := map[Kind][]string{Support: {" S ", " SPT ", " supports the "}, Convoy: {" C ", " CVY ", " convoys the "}}
	for i, at := range spelled(b) {
		for _, kind := range []Type{boardAny, Army, Fleet} {
			unit := units(kind)[i%len(units(kind))]
			for k, words := range alone {
				for _, word := range words {
					reads(t, b, unit+at.text+" "+word, NewOrder(k, kind, at.at))
				}
			}
			for k, words := range first {
				o, end := NewOrder(k, kind, at.at), ""
				if k == Retreat {
					o.To, end = mun, " to Munich"
				}
				for _, word := range words {
					reads(t, b, word+" "+unit+at.text+end, o)
				}
			}
			for k, words := range to {
				for _, word := range words {
					reads(t, b, unit+at.text+word+"MUN", Order{Kind: k, Type: kind, At: at.at, Of: Nowhere, To: mun})
					reads(t, b, unit+"MUN"+word+at.text, Order{Kind: k, Type: kind, At: mun, Of: Nowhere, To: at.at})
				}
			}
			for k, words := range of {
				for _, word := range words {
					o := Order{Kind: k, Type: kind, At: at.at, OfType: Army, Of: mun, To: mun}
					reads(t, b, unit+at.text+word+"A MUN - MUN", o)
					o.At, o.Of, o.OfType = mun, at.at, kind
					reads(t, b, unit+"MUN"+word+unit+at.text+" - MUN", o)
					o.Of, o.OfType, o.To = mun, Army, at.at
					reads(t, b, unit+"MUN"+word+"A MUN - "+at.text, o)
					if k == Support {
						o.Of, o.OfType, o.To = at.at, kind, Nowhere
						reads(t, b, unit+"MUN"+word+unit+at.text+" H", o)
						reads(t, b, unit+"MUN"+word+unit+at.text, o)
					}
				}
			}
		}
	}
}

// TestNamesThatEndInALetter checks names that are another name together with the letter of an order.
func TestNamesThatEndInALetter(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for text, want := range map[string]string{
		"A RUH R MUN": "A RUH R MUN", "A Edinburg H": "A EDI H", "F Lyon S A MAR": "F LYO S A MAR", "F Gulf of Lyon S A MAR - SPA": "F LYO S A MAR - SPA",
		"A Marseille S A PAR": "A MAR S A PAR", "A St Pete S A MOS": "A STP S A MOS",
	} {
		o, err := Parse(b, text)
		if err != nil || o.Text(b) != want {
			t.Errorf("%q is parsed as %q, want %q: %v", text, o.Text(b), want, err)
		}
	}
	if names := b.Spellings(b.Province(0)); !slices.Contains(names, "ADR") || !slices.Contains(names, "Adriatic Sea") || !slices.Contains(names, "Adriatic") {
		t.Error(names)
	}
}
