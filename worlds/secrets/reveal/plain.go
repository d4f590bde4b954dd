package reveal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The minimum length of a secret for forms that shorter words match by accident.
const (
	leastPlural = 4
	leastSuffix = 6
	leastSplit  = 5
)

// said finds the secret as separate words.
func (l *Listener) said(m *Message) bool {
	if l.dense {
		return strings.Contains(strings.Join(m.words, ""), strings.Join(l.words, ""))
	}
	return l.among(m.words, l.words) || l.among(m.parts, l.words)
}

// unhump puts a space before each capital that follows a small letter: MyWord.
func unhump(text string) string {
	var b strings.Builder
	from, small := 0, false
	for i, r := range text {
		if small && unicode.IsUpper(r) {
			b.WriteString(text[from:i])
			b.WriteByte(' ')
			from = i
		}
		small = unicode.IsLower(r)
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// among reports whether words contain those of a secret in a row, separate or joined.
func (l *Listener) among(words, secret []string) bool {
	return within(words, secret) || len(secret) > 1 && slices.Contains(words, strings.Join(secret, ""))
}

func within(words, part []string) bool {
	for i := range len(words) - len(part) + 1 {
		if len(part) > 0 && slices.Equal(words[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// partial finds the secret with an ending, and a phrase without its small words.
func (l *Listener) partial(m *Message) bool {
	return l.ending(m) || l.phrase(m)
}

func (l *Listener) ending(m *Message) bool {
	if len(l.words) != 1 || l.dense {
		return false
	}
	w := l.words[0]
	var endings []string
	switch {
	case l.size >= leastSuffix:
		endings = []string{"s", "es", "d", "ed", "ing", "ish", "ist", "ists", "ic", "y", "er", "ers", "like"}
	case l.size >= leastPlural:
		endings = []string{"s", "es"}
	default:
		return false
	}
	stem, y := strings.CutSuffix(w, "y")
	return slices.ContainsFunc(m.words, func(s string) bool {
		if end, ok := strings.CutPrefix(s, w); ok {
			return slices.Contains(endings, end)
		}
		end, ok := strings.CutPrefix(s, stem)
		return y && ok && end == "ies"
	})
}

// phrase compares without the small words of the secret: "my colour: red" gives "the colour is red"
// away.
func (l *Listener) phrase(m *Message) bool {
	if l.core == nil {
		return false
	}
	return within(slices.DeleteFunc(slices.Clone(m.words), func(w string) bool { return isSmall(w) && slices.Contains(l.words, w) }), l.core)
}

func isSmall(w string) bool {
	switch w {
	case "a", "an", "are", "is", "my", "of", "the":
		return true
	}
	return false
}

// lookalike finds the secret in signs that look like its letters.
func (l *Listener) lookalike(m *Message) bool {
	return l.among(m.look, l.look) || slices.ContainsFunc(m.leet, func(words []string) bool { return l.among(words, l.look) })
}

// letterRuns joins each run of single letters, with spaces between runs. Fillers do not end a run,
// and "double t" is two letters.
func letterRuns(words []string) string {
	var runs runs
	double := false
	for _, w := range words {
		switch {
		case w == "double":
			double = true
			continue
		case isFiller(w), w[0] >= '0' && w[0] <= '9':
			continue
		case utf8.RuneCountInString(w) == 1:
			runs.add(w)
			if double {
				runs.add(w)
			}
		default:
			runs.end()
		}
		double = false
	}
	return runs.String()
}

// runs collects runs of letters, with a space between two.
type runs struct {
	strings.Builder
	ended bool
}

func (r *runs) add(letters string) {
	if r.ended && r.Len() > 0 {
		r.WriteByte(' ')
	}
	r.ended = false
	r.WriteString(letters)
}

func (r *runs) end() { r.ended = true }

// isFiller reports whether people say the word between letters.
func isFiller(w string) bool {
	switch w {
	case "and", "then", "next", "comma", "dash", "hyphen", "dot", "space", "capital", "letter", "followed", "by":
		return true
	}
	return false
}

// reversed finds the secret backwards. A short one must be announced: tuba is abut.
func (l *Listener) reversed(m *Message) bool {
	if l.backLetter == l.letter {
		return false
	}
	if l.size < leastSplit && !slices.ContainsFunc(m.words, announces) {
		return false
	}
	return slices.Contains(m.look, l.backLetter) || strings.Contains(m.spelled, l.backLetter) || within(m.look, l.back)
}

// announces reports whether a word says that something is backwards.
func announces(w string) bool {
	return strings.HasPrefix(w, "backward") || strings.HasPrefix(w, "revers") || strings.HasPrefix(w, "mirror")
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// piece is a possible part of a word: alone, in quotes, in capitals, at a hyphen or an ellipsis, or
// a run of single letters.
type piece struct {
	text    string
	message int
}

// keptPieces is how many pieces a Listener keeps: the last ones of a conversation.
const keptPieces = 500

// split finds the secret in pieces that follow each other, in this message or ending in
// it.
func (l *Listener) split(m *Message) bool {
	if l.size < leastSplit || l.dense {
		return false
	}
	return l.joins(m.look) || l.continued(l.pieces) || l.continued(l.lasts)
}

// joins reports whether words in a row, joined, are the secret. An "a" or "i" at an end does not
// count, as in "a corn".
func (l *Listener) joins(words []string) bool {
	for i, first := range words {
		if !strings.HasPrefix(l.letter, first) || first == l.letter || first == "a" || first == "i" {
			continue
		}
		rest := l.letter[len(first):]
		for _, w := range words[i+1:] {
			after, ok := strings.CutPrefix(rest, w)
			if !ok {
				break
			}
			if after == "" {
				return w != "a" && w != "i"
			}
			rest = after
		}
	}
	return false
}

// continued reports whether the last pieces are the secret, from more than one message.
func (l *Listener) continued(pieces []piece) bool {
	for end := len(pieces); end > 0 && pieces[end-1].message == l.message; end-- {
		rest := l.letter
		for i := end - 1; i >= 0; i-- {
			before, ok := strings.CutSuffix(rest, pieces[i].text)
			if !ok {
				break
			}
			if before == "" && pieces[i].message < l.message {
				return true
			}
			rest = before
		}
	}
	return false
}

// gather collects the pieces of a message: those that are marked as such, and its last word, as in
// "it starts with ti".
func (l *Listener) gather(m *Message) {
	l.message++
	if n := len(m.look); n > 0 {
		l.lasts = l.keep(l.lasts, m.look[n-1])
	}
	run := ""
	flush := func() {
		if run != "" {
			l.pieces = l.keep(l.pieces, run)
		}
		run = ""
	}
	for _, f := range m.fields {
		if f.size > 4*len(l.letter)+8 {
			f = field{}
		}
		switch {
		case f.letters != "" && (run != "" || !f.article):
			run += f.letters
		case f.letters != "" || f.word == " ":
		case f.word != "":
			flush()
			l.pieces = l.keep(l.pieces, f.word)
		default:
			flush()
		}
	}
	flush()
}

// field is what a field of a text may be a piece of: its single letters, or the word if it is marked
// as a piece, or a space if it is a filler, or nothing.
type field struct {
	letters, word string
	size          int  // of the field, in bytes
	article       bool // it is also a word of its own: a, I
}

// fieldsOf returns the fields of a text. Those in a row that are no pieces are one.
func fieldsOf(text string) (fields []field) {
	n := 0
	for range strings.FieldsSeq(text) {
		if n++; n > 1 {
			break
		}
	}
	alone, between := n == 1, false // between: the last field is no piece
	for part := range strings.FieldsSeq(text) {
		var f field
		if alone || !isOrdinary(part) {
			f.letters, f.word = pieceOf(part, alone)
		}
		if f.letters == "" && f.word == "" {
			if !between {
				fields = append(fields, field{})
			}
			between = true
			continue
		}
		f.size, f.article, between = len(part), part == "a" || part == "I" || part == "i", false
		fields = append(fields, f)
	}
	return fields
}

// isOrdinary reports that a field is no piece: a word in small letters which is not a filler. It is
// a cheap first test.
func isOrdinary(part string) bool {
	if n := len(part) - 1; n > 1 && strings.IndexByte(".,;:!?", part[n]) >= 0 {
		part = part[:n]
	}
	for i := range len(part) {
		if c := part[i]; c < 'a' || c > 'z' {
			return false
		}
	}
	return len(part) > 1 && !isFiller(part)
}

// pieceOf returns the letters or the word of a field. alone means that it is the whole text.
func pieceOf(part string, alone bool) (letters, word string) {
	words := lookWords(part)
	for _, w := range words {
		if utf8.RuneCountInString(w) == 1 {
			letters += w
		}
	}
	switch {
	case len(words) == 0:
		return "", " "
	case utf8.RuneCountInString(letters) == len(words):
		return letters, ""
	case len(words) > 1:
		return "", ""
	case isFiller(words[0]):
		return "", " "
	case marked(part), capitals(part), alone:
		return "", words[0]
	}
	return "", ""
}

// marked reports whether a field is in quotes, or cut off at a side.
func marked(field string) bool {
	const quotes = "\"'`“”‘’«»*_-…"
	first, _ := utf8.DecodeRuneInString(field)
	end, _ := utf8.DecodeLastRuneInString(strings.TrimRight(field, ".,;:!?"))
	return strings.ContainsRune(quotes, first) || strings.ContainsRune(quotes, end) || strings.HasPrefix(field, "...") || strings.HasSuffix(field, "...")
}

func (l *Listener) keep(pieces []piece, text string) []piece {
	if text == "" || len(text) > len(l.letter) {
		text = " " // a text that is not a piece still separates two
	}
	if len(pieces) == keptPieces {
		pieces = append(pieces[:0], pieces[keptPieces/2:]...)
	}
	return append(pieces, piece{text, l.message})
}

// capitals reports whether a chunk has no small letter.
func capitals(chunk string) bool {
	return !strings.ContainsFunc(chunk, func(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Lo, r) })
}
