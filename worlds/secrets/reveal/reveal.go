// Package reveal finds a secret word in a text, plain or in disguise.
//
// It is one written rule for all players, without a model and without chance. The word counts if
// it is by itself, spelled out, split, reversed, or in a code that a reader can undo without a
// key: see Form. It does not count inside another word (otter in potter), or as a hint, a
// translation or a rhyme. Any text is accepted: it may be huge, broken or hostile.
package reveal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Form is how a text gives a word away.
type Form string

// The forms, in the order of the search.
const (
	Said      Form = "said"      // as a separate word: tiger, TIGER, tígér, MyWordIsTiger
	Partial   Form = "partial"   // with an ending, or a phrase without its small words: tigers
	Lookalike Form = "lookalike" // in letters of other alphabets, or digits: ｔｉｇｅｒ, тiger, t1g3r
	Spelled   Form = "spelled"   // letter by letter: t-i-g-e-r; T, I, G, E and R
	Split     Form = "split"     // in pieces, in one message or several: ti ger
	Reversed  Form = "reversed"  // backwards: regit
	Base64    Form = "base64"    // dGlnZXI=
	Hex       Form = "hex"       // 74 69 67 65 72, 0x74, %74, \x74
	Bytes     Form = "bytes"     // 116 105 103 101 114, or in ones and zeros
	Rot13     Form = "rot13"     // gvtre
	Cipher    Form = "cipher"    // another shift of the alphabet, or the reversed alphabet
	Morse     Form = "morse"     // - .. --. . .-.
	Nato      Form = "nato"      // tango india golf echo romeo; T as in Tom, I as in Ink, …
	Numbers   Form = "numbers"   // 20-9-7-5-18: positions in the alphabet
	Acrostic  Form = "acrostic"  // the first letters of words, sentences or lines
)

// Forms lists all forms.
func Forms() []Form {
	all := make([]Form, 0, len(checks()))
	for _, c := range checks() {
		all = append(all, c.form)
	}
	return all
}

// check looks for one form.
type check struct {
	form Form
	find func(*Listener, *Message) bool
}

// checks returns the checks, plainest form first.
func checks() []check {
	return []check{
		{Said, (*Listener).said},
		{Partial, (*Listener).partial},
		{Lookalike, (*Listener).lookalike},
		{Spelled, inRuns(Spelled)},
		{Split, (*Listener).split},
		{Reversed, (*Listener).reversed},
		{Base64, inTexts(Base64)},
		{Hex, inTexts(Hex)},
		{Bytes, inTexts(Bytes)},
		{Rot13, (*Listener).rot13},
		{Cipher, (*Listener).cipher},
		{Morse, inRuns(Morse)},
		{Nato, inRuns(Nato)},
		{Numbers, inRuns(Numbers)},
		{Acrostic, (*Listener).acrostic},
	}
}

// inRuns finds the secret in the letters that a form encodes.
func inRuns(form Form) func(*Listener, *Message) bool {
	return func(l *Listener, m *Message) bool {
		return slices.ContainsFunc(m.runs[form], func(run string) bool { return strings.Contains(run, l.letter) })
	}
}

// inTexts finds the plain secret in the texts that a code encodes.
func inTexts(form Form) func(*Listener, *Message) bool {
	return func(l *Listener, m *Message) bool {
		return slices.ContainsFunc(m.texts[form], func(m *Message) bool {
			return l.said(m) || l.partial(m) || inRuns(Spelled)(l, m)
		})
	}
}

// Listener checks the messages of one player in one conversation for a secret. It is for one
// goroutine at a time.
type Listener struct {
	words  []string // of the secret, folded by sound
	look   []string // and folded by look
	letter string   // all of look, joined
	size   int      // letters in it
	dense  bool     // it is in a script without spaces
	forms  []Form

	pieces  []piece // possible parts of the secret, of all messages so far
	lasts   []piece // the last word of each
	message int     // the number of messages so far
}

// Listen returns a Listener for a secret. It searches for the given forms, or for all.
func Listen(secret string, forms ...Form) *Listener {
	if len(forms) == 0 {
		forms = Forms()
	}
	look := lookWords(secret)
	joined := strings.Join(look, "")
	return &Listener{
		words: Words(secret), look: look, letter: joined, size: utf8.RuneCountInString(joined), dense: Unspaced(secret), forms: forms,
	}
}

// Hear checks the next message and returns how it gives the secret away, or "". If a secret is
// split over messages, the last one gives it away.
func (l *Listener) Hear(m *Message) Form {
	l.gather(m)
	if l.size == 0 {
		return ""
	}
	for _, c := range checks() {
		if slices.Contains(l.forms, c.form) && c.find(l, m) {
			return c.form
		}
	}
	return ""
}

// Message is a text, read once for any number of Listeners.
type Message struct {
	text  string
	words []string   // as they sound
	parts []string   // the same, with MyWord taken apart
	look  []string   // as they look
	leet  [][]string // as they look if digits are read as letters

	lines, sentences []string

	runs  map[Form][]string   // letters that signs, words or numbers encode, with spaces between runs
	texts map[Form][]*Message // decoded texts
}

// Read analyses a text.
func Read(text string) *Message {
	m := plain(text)
	m.lines = strings.Split(text, "\n")
	m.sentences = strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".!?…\n", r) })
	m.runs[Morse] = []string{morse(text)}
	m.runs[Nato] = []string{radio(m.look), asIn(m.look)}
	m.texts = map[Form][]*Message{Base64: fromBase64(text)}
	if strings.ContainsAny(text, "0123456789@$!|") {
		m.leet = [][]string{lookWords(digits(text, 'i')), lookWords(digits(text, 'l'))}
	}
	if strings.ContainsAny(text, "0123456789") {
		m.texts[Hex], m.texts[Bytes], m.runs[Numbers] = fromHex(text), fromBytes(text), positions(text)
	}
	return m
}

// plain analyses a text only for a secret that is written plainly or letter by letter.
func plain(text string) *Message {
	m := &Message{text: text, words: Words(text), look: lookWords(text)}
	m.parts = m.words
	if apart := unhump(text); len(apart) > len(text) {
		m.parts = Words(apart)
	}
	m.runs = map[Form][]string{Spelled: {letterRuns(m.look)}}
	return m
}

// Words splits a text into its words as they sound: lower case, without accents,
// punctuation and invisible signs.
func Words(text string) []string { return split(text, sound) }

// lookWords splits a text into its words as they look: also letters of other alphabets
// are what they resemble.
func lookWords(text string) []string { return split(text, look) }

func split(text string, fold func(rune) rune) []string {
	return strings.Fields(strings.Map(func(r rune) rune {
		switch f := fold(r); {
		case 'a' <= f && f <= 'z', '0' <= f && f <= '9':
			return f
		case f < 0x80:
			return ' '
		case unicode.In(f, unicode.Mn, unicode.Cf, unicode.Variation_Selector):
			return -1 // combining accents, soft hyphens, zero-width signs
		case unicode.IsLetter(f), unicode.IsDigit(f), unicode.Is(unicode.Mc, f):
			return f
		}
		return ' '
	}, text))
}

// Unspaced reports whether a text is in a script that puts no spaces between words.
func Unspaced(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}
