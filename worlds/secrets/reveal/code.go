package reveal

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
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
	for t := range strings.FieldsFuncSeq(text, notBase64) {
		texts = appendBase64(texts, t)
		// These signs belong to the code, or separate a code from a word.
		if strings.ContainsAny(t, "+/-_") {
			parts := strings.FieldsFunc(t, func(r rune) bool { return r == '+' || r == '/' || r == '-' || r == '_' })
			for _, p := range parts {
				if len(parts) > 1 {
					texts = appendBase64(texts, p)
				}
			}
		}
	}
	return texts
}

// appendBase64 appends the text that t encodes, if it is one of more than two bytes.
func appendBase64(texts []*Message, t string) []*Message {
	if len(t)%4 == 1 { // one sign too many to be whole bytes
		t = t[:len(t)-1]
	}
	if len(t) < 4 {
		return texts
	}
	var small [64]byte
	b, err := base64.RawStdEncoding.AppendDecode(small[:0], []byte(strings.ReplaceAll(strings.ReplaceAll(t, "-", "+"), "_", "/")))
	if err == nil && len(b) > 2 && utf8.Valid(b) {
		texts = append(texts, plain(string(b)))
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

func (l *Listener) rot13(m *Message) bool {
	return l.size >= leastRot13 && ciphered(m, l.look, l.letter, func(by int) bool { return by == 13 })
}

// cipher finds the secret under any other shift of the alphabet, and under the reversed alphabet.
func (l *Listener) cipher(m *Message) bool {
	return l.size >= leastCaesar && ciphered(m, l.look, l.letter, func(by int) bool { return by != 13 && by != 0 }) ||
		l.size >= leastAtbash && ciphered(m, l.mirror, l.mirrorLetter, func(by int) bool { return by == 0 })
}

// mirrored returns a word in the reversed alphabet.
func mirrored(word string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return r
		}
		return 'a' + 'z' - r
	}, word)
}

// ciphered reports whether a message has words, which are letters if joined, with all letters
// shifted by a number that good accepts.
func ciphered(m *Message, words []string, letters string, good func(by int) bool) bool {
	for i := range len(m.look) - len(words) + 1 {
		by, ok := -1, true
		for k := 0; k < len(words) && ok; k++ {
			by, ok = shifted(m.look[i+k], words[k], by)
		}
		if ok && by >= 0 && good(by) {
			return true
		}
	}
	for i := range len(m.spelled) - len(letters) + 1 {
		if by, ok := shifted(m.spelled[i:i+len(letters)], letters, -1); ok && by >= 0 && good(by) {
			return true
		}
	}
	return false
}

// shifted reports whether word is plain with all its letters shifted by one number, and returns it.
// by is the number so far, or negative if there was no letter yet.
func shifted(word, plain string, by int) (int, bool) {
	if len(word) != len(plain) {
		return by, false
	}
	for i := range len(plain) {
		c, p := word[i], plain[i]
		switch {
		case p < 'a' || p > 'z':
			if c != p {
				return by, false
			}
			continue
		case c < 'a' || c > 'z':
			return by, false
		}
		n := (int(c) - int(p) + 26) % 26
		if by >= 0 && n != by {
			return by, false
		}
		by = n
	}
	return by, true
}
