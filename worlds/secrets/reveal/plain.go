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
	small := false
	for _, r := range text {
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(r)
	}
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
		end, ok := strings.CutPrefix(s, w)
		return ok && slices.Contains(endings, end) || y && s == stem+"ies"
	})
}

// phrase compares without the small words of the secret: "my colour: red" gives "the colour is red"
// away.
func (l *Listener) phrase(m *Message) bool {
	small := []string{"a", "an", "are", "is", "my", "of", "the"}
	drop := func(w string) bool { return slices.Contains(small, w) && slices.Contains(l.words, w) }
	secret := slices.DeleteFunc(slices.Clone(l.words), drop)
	if len(secret) == len(l.words) || len(secret) == 0 {
		return false
	}
	return within(slices.DeleteFunc(slices.Clone(m.words), drop), secret)
}

// lookalike finds the secret in signs that look like its letters.
func (l *Listener) lookalike(m *Message) bool {
	return l.among(m.look, l.look) || slices.ContainsFunc(m.leet, func(words []string) bool { return l.among(words, l.look) })
}

// letterRuns joins each run of single letters, with a space between runs. Fillers do not end a run,
// and "double t" is two letters.
func letterRuns(words []string) string {
	var b strings.Builder
	double := false
	for _, w := range words {
		switch {
		case w == "double":
			double = true
			continue
		case isFiller(w), w[0] >= '0' && w[0] <= '9':
			continue
		case utf8.RuneCountInString(w) == 1:
			b.WriteString(w)
			if double {
				b.WriteString(w)
			}
		default:
			b.WriteByte(' ')
		}
		double = false
	}
	return b.String()
}

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
	back := reverse(l.letter)
	if back == l.letter {
		return false
	}
	announced := slices.ContainsFunc(m.words, func(w string) bool {
		return strings.HasPrefix(w, "backward") || strings.HasPrefix(w, "revers") || strings.HasPrefix(w, "mirror")
	})
	if l.size < leastSplit && !announced {
		return false
	}
	return slices.Contains(m.look, back) || strings.Contains(m.runs[Spelled][0], back) || within(m.look, strings.Fields(reverse(strings.Join(l.look, " "))))
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}
