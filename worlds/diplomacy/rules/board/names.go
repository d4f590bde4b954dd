package board

import (
	"slices"
	"strings"
	"unicode"
)

// aliases are other names in use, a code and then its names, separated by commas.
const aliases = `
ADR Adriatic
AEG Aegean, Aegaean Sea
APU Puglia
BAL Baltic
BAR Barents, Barrents Sea
BLA Black
BOT GOB, Bothnia, Gulf Bothnia, Bay of Bothnia, Bothnian Gulf
BRE Brittany
CLY Clydeside
CON Istanbul
DEN Danmark
EAS EMS, EMD, EME, EMED, East Med, East Mediterranean, East Mediterranean Sea, Eastern Med, Eastern Mediterranean Sea, E Med
EDI Edinburg
ENG ECH, Channel, The Channel, English Chan, Eng Channel
GAS Gascogne
HEL HBH, Helgoland, Heligoland, Heligoland Bight, Helgoland Bay, Helgoland Sea, Helgoland Bright
HOL Netherlands, Nederland, The Netherlands
ION Ionian
IRI IRS, Irish
LVN LVO, Livland, Latvia
LVP LPL, LVL, Lpool
LYO GOL, GLY, Lyon, Lyons, Gulf of Lyons, Gulf of Lion, Gulf of the Lion, Gulf Lyon
MAO MID, MAT, Mid Atlantic, Middle Atlantic, Middle Atlantic Ocean, Mid Atl
MAR Marseille
MOS Moskva
MUN Munchen, Muenchen
NAF NOA, N Africa, Northern Africa, Nth Africa
NAO NAT, North Atlantic, North Atl, N Atlantic, N Atlantic Ocean
NAP Napoli
NTH NTS, N Sea
NWG NRG, NRS, Norwegian, Norw Sea, Norwegean Sea
NWY NOR, NRY, Norge
PIC Picardie
PIE Piemonte, Piemont
ROM Roma
RUH Ruhr Valley
RUM Romania, Roumania, ROU
SER Srbija
SEV Sebastopol, Sevastapol
SKA Skagerrack, Skaggerak, Skagerak, Skaggerack
SMY Izmir
SPA SPN, Espana
STP Petersburg, Saint Petersburg, Sankt Petersburg, St Pete, St Pet, St Pete's, Leningrad, Petrograd
TRI Triest
TUN Tunisia, Tunesia
TUS Toscana, Tuscony
TYR TRL, TYL, TYO, Tyrol, Tirol, Tirolia
TYS TYN, TYH, Tyrrhenian, Tyrhennian Sea, Tyrrhenean Sea
VIE Wien
WAR Warszawa
WES WMS, WMD, WME, WMED, West Med, West Mediterranean, West Mediterranean Sea, Western Med, Western Mediterranean Sea, W Med
YOR York
`

// index fills the lookup of names: codes, full names, and the others.
func (b *Board) index() {
	for p, code := range b.codes[:Provinces] {
		b.name(Province(p), code)
		b.name(Province(p), b.names[p])
	}
	for line := range strings.Lines(strings.TrimSpace(aliases)) {
		code, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		p, _ := b.ByCode(code)
		for name := range strings.SplitSeq(names, ",") {
			b.name(Province(p), strings.TrimSpace(name))
		}
	}
}

// name adds a name of p, unless it is taken.
func (b *Board) name(p Province, name string) {
	if key := Fold(name); !b.named(key) {
		b.lookup[key] = Location(p)
		b.spellings[p] = append(b.spellings[p], name)
	}
}

// Spellings lists the names that Find knows for a province: its code, its full name, and
// the other names in use.
func (b *Board) Spellings(p Province) []string { return slices.Clone(b.spellings[p]) }

func (b *Board) named(key string) bool {
	_, ok := b.lookup[key]
	return ok
}

// Fold is a name without what people write differently: small letters and digits
// only, accents dropped, everything else gone.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		r = plain(unicode.ToLower(r))
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// plain is a letter without its accent.
func plain(r rune) rune {
	if r < 128 {
		return r
	}
	from := []rune("àáâãäåāăąçćčďđèéêëēėęěğìíîïīįıłñńňòóôõöøōőřśşšťţùúûüūůűųýÿźżž")
	to := "aaaaaaaaacccddeeeeeeeegiiiiiiilnnnoooooooorssstttuuuuuuuuyyzzz"
	if i := slices.Index(from, r); i >= 0 && i < len(to) {
		return rune(to[i])
	}
	return r
}

// Find finds a province by its code or any of its names, however they are written.
func (b *Board) Find(name string) (Province, bool) {
	p, ok := b.lookup[Fold(name)]
	return Province(p), ok
}

// Guess finds the provinces a misspelled name may mean, in the order of codes: those
// with a name that begins with it, or else those whose name is nearest. One means it
// is clear; none, that nothing is near.
func (b *Board) Guess(name string) []Province {
	word := Fold(name)
	if len(word) < 4 || len(word) > 40 {
		return nil
	}
	var begins, near Set[Province]
	best := 1 // slips that are forgiven
	if len(word) >= 10 {
		best = 2
	}
	for key, p := range b.lookup {
		if strings.HasPrefix(key, word) {
			begins.Add(Province(p))
		}
		if len(key) < 4 {
			continue // a code is three letters: any slip makes another one
		}
		switch d := slips(word, key, best); {
		case d < best:
			best, near = d, Set[Province]{}
			near.Add(Province(p))
		case d == best:
			near.Add(Province(p))
		}
	}
	if !begins.Empty() {
		near = begins
	}
	return slices.Collect(near.All())
}

// slips counts the letters that are wrong, missing, too many or swapped between a
// and b. Anything over most is most+1.
func slips(a, b string, most int) int {
	if len(a) > len(b)+most || len(b) > len(a)+most {
		return most + 1
	}
	var rows [3][64]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := last[j-1]
			if a[i-1] != b[j-1] {
				wrong++
			}
			row[j] = min(wrong, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}
