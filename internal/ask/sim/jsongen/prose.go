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
		dst = l.appendSentence(dst, r, topic)
		topic = ""
	}
	return dst
}

// appendSentence appends one sentence, about topic unless that is empty.
func (l *Lexicon) appendSentence(dst []byte, r *rand.Rand, topic string) []byte {
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

// noun returns a common noun.
func (l *Lexicon) noun(r *rand.Rand) string { return pick(r, l.nouns) }

// name returns a person's name.
func (l *Lexicon) name(r *rand.Rand) string { return pick(r, l.names) }

// phrase returns a few words without a full stop.
func (l *Lexicon) phrase(r *rand.Rand) string { return string(l.fill(nil, r, pick(r, l.phrases), "")) }

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

// Lexicon makes up plausible English from words and templates. Its sentences are grammatical, varied and
// harmless, but have no meaning. They depend only on the random generator, and every length is bounded.
// It may be used from several goroutines at once.
type Lexicon struct {
	sentences, aboutTopic, phrases, nouns, adjectives, verbs, adverbials, openers, names []string
}

// NewLexicon returns the Lexicon.
func NewLexicon() *Lexicon {
	return &Lexicon{
		sentences: sentences(), aboutTopic: aboutTopic(), phrases: phrases(), nouns: nouns(), adjectives: adjectives(),
		verbs: verbs(), adverbials: adverbials(), openers: openers(), names: names(),
	}
}

// sentences returns templates: see fill for the capital letters.
func sentences() []string {
	return []string{
		"O the N is A D.",
		"we should V the N before the N.",
		"O it is better to V the N than to V the N.",
		"the A N and the A N will V each other D.",
		"nobody can V a N D, and that is why the N matters.",
		"if we V the N, the N will V us D.",
		"P said that the N is A, and the N agrees.",
		"my N is A enough to V the N D.",
		"O let us V the N D and see what the N does.",
		"there is a A N behind every A N.",
		"a A N needs a N that can V it.",
		"you could V the N, but then the N stays A.",
		"what I want is a A N, not a A N.",
		"the N was A D; now it is A.",
		"O P will V the N if the N stays A.",
		"every N that we V makes the next N more A.",
	}
}

// aboutTopic returns templates of sentences that mention a topic.
func aboutTopic() []string {
	return []string{
		"O as for T, the N is A D.",
		"you mention T, and I think the N should V it D.",
		"on T: we should V the N before the N.",
		"when I think of T, a A N comes to mind.",
		"T is where the N and the N meet D.",
		"to speak of T, I would V the N first.",
		"about T I am A, but the N is A.",
		"T matters more than the A N, so let us V it D.",
	}
}

// phrases returns templates without a full stop.
func phrases() []string {
	return []string{
		"the A N", "a N to V", "V the N D", "A and A", "N by N", "the N of the N", "how to V a A N",
		"a A N for P",
	}
}

func nouns() []string {
	return strings.Fields(`harbour plan river market offer promise border bridge season letter proposal reason answer pattern signal
		garden engine treaty number question winter story method balance journey council mountain lantern choice
		bargain harvest map compass supply rumour archive ladder measure window circle village fleet forest ledger
		message partner risk garrison workshop problem result detail exchange`)
}

func adjectives() []string {
	return strings.Fields(`careful quiet bright stubborn useful honest narrow patient bold simple fair ready rare steady sharp gentle
		certain hidden open costly sound modest early distant common curious strong fragile plain generous uneasy
		welcome`)
}

func verbs() []string {
	return strings.Fields(`support follow trade build measure question protect share change hold trust reach test carry repair open cross
		join weigh keep leave study defend offer choose watch name balance`)
}

func adverbials() []string {
	return []string{
		"for now", "this season", "by tomorrow", "without delay", "in the end", "as before",
		"at a fair price", "with some care", "under these terms", "on both sides", "after the talks",
		"once more", "in plain words", "by a small margin", "against the odds", "until spring",
	}
}

func openers() []string {
	return []string{
		"I think", "to my mind", "in short,", "even so,", "as I see it,", "for my part,", "clearly,",
		"perhaps", "on balance,", "to be fair,", "still,", "frankly,",
	}
}

func names() []string {
	return strings.Fields(`Ada Bruno Chidi Dana Emil Farah Goran Hana Ines Jonas Kira Lars Mina Noor Otto Priya Quentin Rosa Sami Tove
		Umar Vera Wen Xenia Yusuf Zora`)
}
