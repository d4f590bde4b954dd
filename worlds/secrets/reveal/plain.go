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
