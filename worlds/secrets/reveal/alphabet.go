package reveal

import (
	"regexp"
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

// morse reads dots and dashes; everything else ends a run.
func morse(text string) string {
	var runs runs
	var sign []byte // of the current token
	other := false  // it has something else
	flush := func() {
		if letter := morseLetter(string(sign)); letter != "" && !other {
			runs.add(letter)
		} else if other || len(sign) > 0 {
			runs.end()
		}
		sign, other = sign[:0], false
	}
	for _, r := range text {
		switch r {
		case '.', '•', '·', '∙', '●', '⋅':
			sign = append(sign, '.')
		case '-', '–', '—', '−', '_', '‐', '‑', '▬':
			sign = append(sign, '-')
		case '/', '|', ',', ';', '"', '\'', '`', '*', '(', ')', '…', ' ', '\n':
			flush()
		default:
			if unicode.IsSpace(r) {
				flush()
			} else {
				other = true
			}
		}
	}
	flush()
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
	return look(r), true
}
