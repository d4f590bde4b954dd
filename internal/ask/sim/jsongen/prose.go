// Part prose makes up plausible English from a small grammar.
//
// It promises that its output depends only on the random generator, and that every length is bounded.
// The sentences are grammatical, varied and harmless, but have no meaning.

package jsongen

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// AppendText appends sentences of about size bytes, at least one. The first mentions topic, unless it
// is empty.
func (l *Lexicon) AppendText(dst []byte, r *rand.Rand, topic string, size int) []byte {
	start := len(dst)
	for first := true; first || len(dst)-start < size; first = false {
		if !first {
			dst = append(dst, ' ')
		}
		dst = l.AppendSentence(dst, r, topic)
		topic = ""
	}
	return dst
}

// AppendSentence appends one sentence, about topic unless that is empty.
func (l *Lexicon) AppendSentence(dst []byte, r *rand.Rand, topic string) []byte {
	start := len(dst)
	if topic != "" {
		dst = l.fill(dst, r, pick(r, l.aboutTopic), topic)
	} else {
		dst = l.fill(dst, r, pick(r, l.sentences), "")
	}
	if c := dst[start]; 'a' <= c && c <= 'z' {
		dst[start] = c - 'a' + 'A'
	}
	return dst
}

// Word returns a common noun.
func (l *Lexicon) Word(r *rand.Rand) string { return pick(r, l.nouns) }

// Name returns a person's name.
func (l *Lexicon) Name(r *rand.Rand) string { return pick(r, l.names) }

// Phrase returns a few words without a full stop.
func (l *Lexicon) Phrase(r *rand.Rand) string { return string(l.fill(nil, r, pick(r, l.phrases), "")) }

// Topic returns a long word at a random position in text, or "" if there is none. It looks at a small
// part of text only.
func Topic(r *rand.Rand, text string) string {
	const window = 160
	from := 0
	if len(text) > window {
		from = r.IntN(len(text) - window)
	}
	best := ""
	for word := range strings.FieldsFuncSeq(text[from:min(len(text), from+window)], notLetter) {
		if n := len(word); n >= 4 && n <= 20 && n > len(best) {
			best = word
		}
	}
	return best
}

func notLetter(c rune) bool {
	return c == utf8.RuneError || c >= utf8.RuneSelf || !('a' <= c|0x20 && c|0x20 <= 'z')
}

// fill appends a template. A capital letter in it stands for a word of a list.
func (l *Lexicon) fill(dst []byte, r *rand.Rand, template, topic string) []byte {
	for i := range len(template) {
		switch c := template[i]; c {
		case 'N':
			dst = append(dst, pick(r, l.nouns)...)
		case 'A':
			dst = append(dst, pick(r, l.adjectives)...)
		case 'V':
			dst = append(dst, pick(r, l.verbs)...)
		case 'D':
			dst = append(dst, pick(r, l.adverbials)...)
		case 'O':
			dst = append(dst, pick(r, l.openers)...)
		case 'P':
			dst = append(dst, pick(r, l.names)...)
		case 'T':
			dst = append(dst, topic...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }
