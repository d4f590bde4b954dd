package reveal

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The minimum length of a secret for an acrostic: of the words of a sentence or of lines, and of
// words anywhere.
const (
	leastAcrostic = 4
	leastAnywhere = 7
)

var asInRE = regexp.MustCompile(`\b([a-z]) (?:as in|like in|for|is for|like) [a-z]+`)

// morse reads dots and dashes; everything else is a space.
func morse(text string) string {
	plain := strings.Map(func(r rune) rune {
		switch r {
		case '•', '·', '∙', '●', '⋅':
			return '.'
		case '–', '—', '−', '_', '‐', '‑', '▬':
			return '-'
		case '/', '|', ',', ';', '"', '\'', '`', '*', '(', ')':
			return ' '
		case '…':
			return ' '
		}
		return r
	}, text)
	var b strings.Builder
	for token := range strings.FieldsSeq(plain) {
		b.WriteRune(morseLetter(token))
	}
	return b.String()
}

// morseLetter returns the letter of a sign, or a space.
func morseLetter(sign string) rune {
	for i, s := range [...]string{
		".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--",
		"-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--..",
	} {
		if s == sign {
			return 'a' + rune(i)
		}
	}
	return ' '
}

// radio reads the words of the radio alphabet. Other words are spaces, except fillers.
func radio(words []string) string {
	var b strings.Builder
	for _, w := range words {
		switch letter := natoLetter(w); {
		case letter != 0:
			b.WriteRune(letter)
		case isFiller(w), utf8.RuneCountInString(w) == 1, w == "as", w == "in", w == "for", w == "like", w == "is":
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// asIn reads letters with an example word: T as in Tom.
func asIn(words []string) string {
	if !slices.Contains(words, "for") && !slices.Contains(words, "in") && !slices.Contains(words, "like") {
		return ""
	}
	var b strings.Builder
	for _, found := range asInRE.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		b.WriteString(found[1])
	}
	return b.String()
}

// natoLetter returns the letter of a word of the radio alphabet, or 0.
func natoLetter(word string) rune {
	switch word {
	case "alpha", "alfa", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "juliett", "kilo", "lima",
		"mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "whisky", "xray",
		"yankee", "zulu":
		return rune(word[0])
	case "ray": // of x-ray
		return 'x'
	}
	return 0
}

// acrostic finds the secret in the first letters of lines or sentences that follow each
// other, of all words of a sentence or a line, or of words anywhere if it is long.
func (l *Listener) acrostic(m *Message) bool {
	if l.size < leastAcrostic {
		return false
	}
	for _, parts := range [][]string{m.lines, m.sentences} {
		if strings.Contains(initials(parts), l.letter) {
			return true
		}
		for _, p := range parts {
			if starts(p, l.letter) && initials(lookWords(p)) == l.letter {
				return true
			}
		}
	}
	return l.size >= leastAnywhere && strings.Contains(initials(m.look), l.letter)
}

// starts reports whether a text and a word begin with the same letter. It is a cheap first test.
func starts(text, word string) bool {
	i := strings.IndexFunc(text, unicode.IsLetter)
	return i >= 0 && strings.HasPrefix(word, initials([]string{text[i:min(len(text), i+utf8.UTFMax)]}))
}

// initials joins the first letter of each text that has one.
func initials(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		if i := strings.IndexFunc(t, unicode.IsLetter); i >= 0 {
			r, _ := utf8.DecodeRuneInString(t[i:])
			b.WriteRune(look(r))
		}
	}
	return b.String()
}
