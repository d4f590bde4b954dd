package reveal

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode"
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
		texts = append(texts, plainMessage(string(b)))
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
			texts = append(texts, plainMessage(string(b)))
		}
	}
	return texts
}

// fromBytes reads decimal or binary numbers as ASCII letters.
func fromBytes(text string) (texts []*Message) {
	for _, run := range countRE.FindAllString(text, -1) {
		texts = append(texts, plainMessage(numbered(figureRE.FindAllString(run, -1), 10, printable)))
	}
	for _, run := range bitsRE.FindAllString(text, -1) {
		texts = append(texts, plainMessage(numbered(octetRE.FindAllString(run, -1), 2, printable)))
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

// The minimum length of a secret for an acrostic: of the words of a sentence or of lines, and of
// words anywhere.
const (
	leastAcrostic = 4
	leastAnywhere = 7
)

var asInRE = regexp.MustCompile(`\b([a-z]) (?:as in|like in|for|is for|like) [a-z]+`)

// morse reads dots and dashes; everything else ends a run.
func morse(text string) string {
	signs := strings.Map(func(r rune) rune {
		switch r {
		case '.', '•', '·', '∙', '●', '⋅':
			return '.'
		case '-', '–', '—', '−', '_', '‐', '‑', '▬':
			return '-'
		case '/', '|', ',', ';', '"', '\'', '`', '*', '(', ')', '…':
			return ' '
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return '?'
	}, text)
	var runs runs
	for sign := range strings.FieldsSeq(signs) {
		if letter := morseLetter(sign); letter != "" {
			runs.add(letter)
		} else {
			runs.end()
		}
	}
	return runs.String()
}

// morseLetter returns the letter of a sign, or "".
func morseLetter(sign string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for i, s := range [...]string{
		".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--",
		"-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--..",
	} {
		if s == sign {
			return letters[i : i+1]
		}
	}
	return ""
}

// radio reads the words of the radio alphabet. Other words end a run, except fillers.
func radio(words []string) string {
	var runs runs
	for _, w := range words {
		switch letter := natoLetter(w); {
		case letter != "":
			runs.add(letter)
		case isFiller(w), utf8.RuneCountInString(w) == 1, w == "as", w == "in", w == "for", w == "like", w == "is":
		default:
			runs.end()
		}
	}
	return runs.String()
}

// asIn reads letters with an example word: T as in Tom.
func asIn(words []string) string {
	if !mayExplain(words) {
		return ""
	}
	var b strings.Builder
	for _, found := range asInRE.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		b.WriteString(found[1])
	}
	return b.String()
}

// mayExplain reports whether a letter is before a word that can explain it. It is a cheap first test.
func mayExplain(words []string) bool {
	for i := 1; i < len(words)-1; i++ {
		switch words[i] {
		case "as", "for", "is", "like":
			if last := words[i-1]; len(last) == 1 || last[len(last)-2] >= utf8.RuneSelf {
				return true
			}
		}
	}
	return false
}

// natoLetter returns the letter of a word of the radio alphabet, or "".
func natoLetter(word string) string {
	switch word {
	case "alpha", "alfa", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "juliett", "kilo", "lima",
		"mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "whisky", "xray",
		"yankee", "zulu":
		return word[:1]
	case "ray": // of x-ray
		return "x"
	}
	return ""
}

// acrostic is a text in parts, which are lines or sentences.
type acrostic struct {
	parts    []string
	initials string // of the parts
}

func acrosticOf(parts []string) acrostic { return acrostic{parts, initials(parts)} }

// acrostic finds the secret in the first letters of lines or sentences that follow each
// other, of all words of a sentence or a line, or of words anywhere if it is long.
func (l *Listener) acrostic(m *Message) bool {
	if l.size < leastAcrostic {
		return false
	}
	for _, a := range []*acrostic{&m.lines, &m.sentences} {
		if strings.Contains(a.initials, l.letter) {
			return true
		}
		for _, p := range a.parts {
			if starts(p, l.letter) && initials(lookWords(p)) == l.letter {
				return true
			}
		}
	}
	return l.size >= leastAnywhere && strings.Contains(m.initials, l.letter)
}

// starts reports whether a text and a word begin with the same letter. It is a cheap first test.
func starts(text, word string) bool {
	r, ok := initial(text)
	first, _ := utf8.DecodeRuneInString(word)
	return ok && r == first
}

// initials joins the first letter of each text that has one.
func initials(texts []string) string {
	b := make([]byte, 0, len(texts)+utf8.UTFMax)
	for _, t := range texts {
		if r, ok := initial(t); ok {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// initial returns the first letter of a text as it looks.
func initial(text string) (rune, bool) {
	i := strings.IndexFunc(text, unicode.IsLetter)
	if i < 0 {
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return foldLook(r), true
}
