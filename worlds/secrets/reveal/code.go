package reveal

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The minimum length of a secret for codes that English words match by accident.
const (
	leastRot13  = 4
	leastAtbash = 5
	leastCaesar = 6
)

var (
	hexRE    = regexp.MustCompile(`(?i)(?:(?:\\x|0x|%|&#x|\\u00|u\+00)?[0-9a-f]{2}[\s,;:-]*){3,}`)
	pairRE   = regexp.MustCompile(`(?i)(?:\\x|0x|%|&#x|\\u00|u\+00)?([0-9a-f]{2})`)
	bitsRE   = regexp.MustCompile(`\b[01]{7,8}(?:[\s,;|-]*[01]{7,8})*\b`)
	octetRE  = regexp.MustCompile(`[01]{7,8}`)
	countRE  = regexp.MustCompile(`\b\d{1,3}(?:[\s,;:/|.&#+()\[\]-]+\d{1,3}\b){2,}`)
	figureRE = regexp.MustCompile(`\d+`)
)

func fromBase64(text string) (texts []*Message) {
	var tokens []string
	for _, t := range strings.FieldsFunc(text, notBase64) {
		tokens = append(tokens, t)
		// These signs belong to the code, or separate a code from a word.
		if parts := strings.FieldsFunc(t, func(r rune) bool { return strings.ContainsRune("+/-_", r) }); len(parts) > 1 {
			tokens = append(tokens, parts...)
		}
	}
	for _, t := range tokens {
		if len(t)%4 == 1 { // one sign too many to be whole bytes
			t = t[:len(t)-1]
		}
		t = strings.ReplaceAll(strings.ReplaceAll(t, "-", "+"), "_", "/")
		if b, err := base64.RawStdEncoding.DecodeString(t); err == nil && len(b) > 2 && utf8.Valid(b) {
			texts = append(texts, plain(string(b)))
		}
	}
	return texts
}

func notBase64(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '+' && r != '/' && r != '-' && r != '_'
}

func fromHex(text string) (texts []*Message) {
	for _, run := range hexRE.FindAllString(text, -1) {
		var digits strings.Builder
		for _, p := range pairRE.FindAllStringSubmatch(run, -1) {
			digits.WriteString(p[1])
		}
		if b, err := hex.DecodeString(digits.String()); err == nil {
			texts = append(texts, plain(string(b)))
		}
	}
	return texts
}

// fromBytes reads decimal or binary numbers as ASCII letters.
func fromBytes(text string) (texts []*Message) {
	for _, run := range countRE.FindAllString(text, -1) {
		texts = append(texts, plain(numbered(figureRE.FindAllString(run, -1), 10, printable)))
	}
	for _, run := range bitsRE.FindAllString(text, -1) {
		texts = append(texts, plain(numbered(octetRE.FindAllString(run, -1), 2, printable)))
	}
	return texts
}

// positions reads numbers as positions in the alphabet.
func positions(text string) (runs []string) {
	for _, run := range countRE.FindAllString(text, -1) {
		runs = append(runs, numbered(figureRE.FindAllString(run, -1), 10, func(n uint64) rune {
			if n < 1 || n > 26 {
				return ' '
			}
			return 'a' + rune(n) - 1
		}))
	}
	return runs
}

// numbered converts numbers to a text.
func numbered(figures []string, base int, sign func(uint64) rune) string {
	var b strings.Builder
	for _, f := range figures {
		n, err := strconv.ParseUint(f, base, 8)
		if err != nil {
			n = 0
		}
		b.WriteRune(sign(n))
	}
	return b.String()
}

func printable(n uint64) rune {
	if n < ' ' || n > '~' {
		return ' '
	}
	return rune(n)
}

func (l *Listener) rot13(m *Message) bool { return l.size >= leastRot13 && l.ciphered(m, shift(13)) }

// cipher finds the secret under any other shift of the alphabet, and under the reversed alphabet.
func (l *Listener) cipher(m *Message) bool {
	for by := rune(1); by < 26 && l.size >= leastCaesar; by++ {
		if by != 13 && l.ciphered(m, shift(by)) {
			return true
		}
	}
	return l.size >= leastAtbash && l.ciphered(m, func(r rune) rune { return 'a' + 'z' - r })
}

func shift(by rune) func(rune) rune { return func(r rune) rune { return 'a' + (r-'a'+by)%26 } }

func (l *Listener) ciphered(m *Message, change func(rune) rune) bool {
	secret := make([]string, len(l.look))
	for i, w := range l.look {
		secret[i] = strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return r
			}
			return change(r)
		}, w)
	}
	if slices.Equal(secret, l.look) { // it has no Latin letter
		return false
	}
	return within(m.look, secret) || strings.Contains(m.runs[Spelled][0], strings.Join(secret, ""))
}
