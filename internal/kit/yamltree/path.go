package yamltree

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/kit/text"
)

// Position is a position in the file, or an override.
type Position struct {
	Set          string // the override, as --set a.b=c
	Line, Column int
}

// Path names a key of a plan: agents, bold, stop, [0].
type Path []string

// To returns p with one more step. It does not change p.
func (p Path) To(step string) Path { return append(slices.Clone(p), step) }

// String writes agents.bold.stop[0]. A step that is not a plain word is quoted.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch index := strings.HasPrefix(step, "["); {
		case index:
		case i > 0:
			b.WriteByte('.')
		}
		if plainStep(step) {
			b.WriteString(step)
		} else {
			b.WriteString(Quote(step))
		}
	}
	return b.String()
}

func plainStep(step string) bool {
	return step != "" && !strings.ContainsFunc(step, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-[]/*", r)
	})
}

// Quote quotes a text from outside, on one line, cut to a length.
func Quote(s string) string {
	return strconv.Quote(text.Excerpt(s, 60))
}

var keyStep = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// KeyPath parses a path of plain words, as path.String writes it.
func KeyPath(key string) Path { return keyStep.FindAllString(key, -1) }

// Index returns the step of a path to an element of a list.
func Index(i int) string { return fmt.Sprintf("[%d]", i) }
