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

// rule says how a form is found.
type rule struct {
	form  Form
	finds func(l *Listener, m *Message) bool
}

// rules lists the rules of all forms, in the order of the search.
func rules() [numForms]rule {
	return [...]rule{
		{Said, (*Listener).said},
		{Partial, (*Listener).partial},
		{Lookalike, (*Listener).lookalike},
		{Spelled, func(l *Listener, m *Message) bool { return strings.Contains(m.spelled, l.letter) }},
		{Split, (*Listener).split},
		{Reversed, (*Listener).reversed},
		{Base64, func(l *Listener, m *Message) bool { return l.decoded(m.base64) }},
		{Hex, func(l *Listener, m *Message) bool { return l.decoded(m.hex) }},
		{Bytes, func(l *Listener, m *Message) bool { return l.decoded(m.bytes) }},
		{Rot13, (*Listener).rot13},
		{Cipher, (*Listener).cipher},
		{Morse, func(l *Listener, m *Message) bool { return strings.Contains(m.morse, l.letter) }},
		{Nato, func(l *Listener, m *Message) bool {
			return strings.Contains(m.radio, l.letter) || strings.Contains(m.asIn, l.letter)
		}},
		{Numbers, func(l *Listener, m *Message) bool {
			return slices.ContainsFunc(m.numbers, func(run string) bool { return strings.Contains(run, l.letter) })
		}},
		{Acrostic, (*Listener).acrostic},
	}
}

const numForms = 15

// Forms lists all forms.
func Forms() []Form {
	var all []Form
	for _, r := range rules() {
		all = append(all, r.form)
	}
	return all
}

// decoded finds the plain secret in the texts that a code encodes.
func (l *Listener) decoded(texts []*Message) bool {
	return slices.ContainsFunc(texts, func(m *Message) bool {
		return l.said(m) || l.partial(m) || strings.Contains(m.spelled, l.letter)
	})
}

// Secret is a word or phrase to listen for, analysed once for any number of Listeners.
type Secret struct {
	words  []string       // folded by sound
	core   []string       // the same without small words, or nil if there are none or no others
	look   []string       // folded by look
	letter string         // all of look, joined
	size   int            // letters in it
	dense  bool           // it is in a script without spaces
	counts [numForms]bool // which of the rules count

	back, mirror []string // look backwards, and in the reversed alphabet
	backLetter   string   // letter backwards
	mirrorLetter string   // letter in the reversed alphabet
}

// NewSecret analyses a secret. Listeners search for the given forms, or for all.
func NewSecret(secret string, forms ...Form) *Secret {
	s := &Secret{words: Words(secret), look: lookWords(secret), dense: Unspaced(secret)}
	s.letter = strings.Join(s.look, "")
	s.size = utf8.RuneCountInString(s.letter)
	s.core = slices.DeleteFunc(slices.Clone(s.words), isSmall)
	if len(s.core) == len(s.words) || len(s.core) == 0 {
		s.core = nil
	}
	s.back, s.backLetter = strings.Fields(reverse(strings.Join(s.look, " "))), reverse(s.letter)
	s.mirrorLetter = mirrored(s.letter)
	for _, w := range s.look {
		s.mirror = append(s.mirror, mirrored(w))
	}
	for i, r := range rules() {
		s.counts[i] = len(forms) == 0 || slices.Contains(forms, r.form)
	}
	return s
}

// Listener checks the messages of one player in one conversation for a secret. It is for one
// goroutine at a time.
type Listener struct {
	*Secret
	pieces  []piece // possible parts of the secret, of all messages so far
	lasts   []piece // the last word of each
	message int     // the number of messages so far
}

// Listen returns a Listener for the secret.
func (s *Secret) Listen() *Listener { return &Listener{Secret: s} }

// Hear checks the next message and returns how it gives the secret away, or "". If a secret is
// split over messages, the last one gives it away.
func (l *Listener) Hear(m *Message) Form {
	l.gather(m)
	if l.size == 0 {
		return ""
	}
	for i, r := range rules() {
		if l.counts[i] && r.finds(l, m) {
			return r.form
		}
	}
	return ""
}

// Message is a text, read once for any number of Listeners.
type Message struct {
	words  []string   // as they sound
	parts  []string   // the same, with MyWord taken apart
	look   []string   // as they look
	leet   [][]string // as they look if digits are read as letters
	fields []field    // what may be a piece of a secret

	// The letters that signs, words or numbers encode, with spaces between runs.
	spelled, morse, radio, asIn string
	numbers                     []string
	base64, hex, bytes          []*Message // decoded texts

	lines, sentences acrostic
	initials         string // of the words
}

// Read analyses a text.
func Read(text string) *Message {
	m := plainMessage(text)
	m.fields = fieldsOf(text)
	m.lines = acrosticOf(strings.Split(text, "\n"))
	m.sentences = acrosticOf(strings.FieldsFunc(text, func(r rune) bool {
		return r == '.' || r == '!' || r == '?' || r == '…' || r == '\n'
	}))
	m.initials = initials(m.look)
	m.morse, m.radio, m.asIn = morse(text), radio(m.look), asIn(m.look)
	m.base64 = fromBase64(text)
	m.leet = leet(text)
	if strings.ContainsAny(text, "0123456789") {
		m.hex, m.bytes, m.numbers = fromHex(text), fromBytes(text), positions(text)
	}
	return m
}

// plainMessage analyses a text only for a secret that is written plainly or letter by letter.
func plainMessage(text string) *Message {
	m := &Message{words: Words(text)}
	m.look = m.words
	if !isASCII(text) { // ASCII looks as it sounds
		m.look = lookWords(text)
	}
	m.parts = m.words
	if apart := unhump(text); len(apart) > len(text) {
		m.parts = Words(apart)
	}
	m.spelled = letterRuns(m.look)
	return m
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Words splits a text into its words as they sound: lower case, without accents,
// punctuation and invisible signs.
func Words(text string) []string { return split(text, foldSound) }

// lookWords splits a text into its words as they look: also letters of other alphabets
// are what they resemble.
func lookWords(text string) []string { return split(text, foldLook) }

func split(text string, fold func(rune) rune) []string {
	var folded strings.Builder
	folded.Grow(len(text) + utf8.UTFMax)
	for _, r := range text {
		if r >= utf8.RuneSelf {
			r = fold(r)
		}
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			folded.WriteByte(byte(r))
		case 'A' <= r && r <= 'Z':
			folded.WriteByte(byte(r) | 0x20)
		case r < utf8.RuneSelf:
			folded.WriteByte(' ')
		case unicode.In(r, unicode.Mn, unicode.Cf, unicode.Variation_Selector):
			// combining accents, soft hyphens, zero-width signs
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mc, r):
			folded.WriteRune(r)
		default:
			folded.WriteByte(' ')
		}
	}
	return strings.Fields(folded.String())
}

// Unspaced reports whether a text is in a script that puts no spaces between words.
func Unspaced(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}

// foldSound returns a letter as it sounds: lower case, without its accent.
func foldSound(r rune) rune {
	r = unicode.ToLower(r)
	if r < 0xE0 || r > 0x17F {
		return r
	}
	for _, group := range [...]string{
		"aàáâãäåāăą", "cçćĉċč", "dďđ", "eèéêëēĕėęě", "gĝğġģ", "hĥħ", "iìíîïĩīĭįı", "jĵ", "kķ", "lĺļľŀł",
		"nñńņňŉ", "oòóôõöøōŏő", "rŕŗř", "sśŝşšſ", "tţťŧ", "uùúûüũūŭůűų", "wŵ", "yýÿŷ", "zźżž",
	} {
		if strings.ContainsRune(group, r) {
			return rune(group[0])
		}
	}
	return r
}

// foldLook returns the plain letter that a sign looks like, or how it sounds.
func foldLook(r rune) rune {
	switch {
	case r < 0x80:
		return unicode.ToLower(r)
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return unicode.ToLower(r - 0xFEE0)
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical alphabets, each A to Z and a to z
		return 'a' + (r-0x1D400)%26
	case r >= 0x24B6 && r <= 0x24E9: // circled
		return 'a' + (r-0x24B6)%26
	case r >= 0x249C && r <= 0x24B5: // in brackets
		return 'a' + r - 0x249C
	case r >= 0x1F130 && r <= 0x1F149, r >= 0x1F150 && r <= 0x1F169, r >= 0x1F170 && r <= 0x1F189: // squared and negative
		return 'a' + (r-0x1F130)%32
	case r >= 0x1F1E6 && r <= 0x1F1FF: // the letters that flags are made of
		return 'a' + r - 0x1F1E6
	}
	s := foldSound(r)
	if s >= 0x80 {
		return twin(s)
	}
	return s
}

// twin returns the Latin letter that a letter looks like: Cyrillic, Greek,
// Armenian, small capitals, raised letters, script letters, and letters upside down.
func twin(r rune) rune {
	for _, group := range [...]string{
		"aаαɑᴀᵃₐɐ", "bьβʙᵇϐ", "cсϲᴄᶜℂℭɔ", "dԁᴅᵈⅾ", "eеёεєᴇᵉℯℰǝ", "fꜰᶠℱϝɟ", "gɡցɢᵍℊƃ", "hһհʜʰℋℌℍɥ", "iіїιɪᶦⁱⅰℐℑᴉ", "jјᴊʲϳɾ",
		"kкκᴋᵏʞ", "lӏʟˡⅼℒן", "mмᴍᵐⅿℳɯ", "nпηոɴⁿℕ", "oоοσօᴏᵒℴ", "pрρᴘᵖℙ", "qԛզǫℚ", "rгʀʳℛℜℝɹ", "sѕꜱˢ", "tтτᴛᵗʇ",
		"uυսᴜᵘ", "vѵνᴠᵛⅴʌ", "wԝωᴡʷʍ", "xхχˣⅹ", "yуγүʏʸʎ", "zᴢᶻℤℨ",
	} {
		if strings.ContainsRune(group, r) {
			return rune(group[0])
		}
	}
	return r
}

// leet returns the words of a text as they look if digits and signs are read as letters, in words
// that also have letters. A one can be an i or an l, so there may be two readings.
func leet(text string) [][]string {
	if !strings.ContainsAny(text, "0123456789@$!|") {
		return nil
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '@' && r != '$' && r != '!' && r != '|'
	})
	changed := !isASCII(text) // ASCII without such a word looks as it did
	for i, w := range words {
		words[i] = strings.TrimRight(w, "!") // at the end of a word it is punctuation
		changed = changed || isLeet(words[i])
	}
	if !changed {
		return nil
	}
	as := func(one rune) []string {
		read := make([]string, len(words))
		for i, w := range words {
			read[i] = digits(w, one)
		}
		return lookWords(strings.Join(read, " "))
	}
	return [][]string{as('i'), as('l')}
}

func isLeet(word string) bool {
	return strings.ContainsAny(word, "0134578@$!|") && strings.ContainsFunc(word, unicode.IsLetter)
}

// digits replaces the digits and signs of a word that can be read as letters.
func digits(word string, one rune) string {
	if !isLeet(word) {
		return word
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '0':
			return 'o'
		case '1', '!', '|':
			return one
		case '3':
			return 'e'
		case '4', '@':
			return 'a'
		case '5', '$':
			return 's'
		case '7':
			return 't'
		case '8':
			return 'b'
		}
		return r
	}, word)
}
