package reveal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
