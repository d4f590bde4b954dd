// Package genome splits prompts into spans, and changes and combines them. A span is a sentence, a step, an example or a
// sentence about the form of the answer.
//
// A prompt that is parsed and written again is unchanged. Operators never cut inside a span, so the results still read as
// sentences. They draw only from the generator that they are given, and never write to their arguments.
//
// It asks no model: package play has the operators that a model applies.
package genome

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Role is the purpose of a span.
type Role string

// The roles, in the order in which a prompt that is made of parts has them.
const (
	Instructions Role = "instructions"
	Steps        Role = "steps"
	Examples     Role = "examples"
	Format       Role = "format"
)

// Roles lists the roles in order.
func Roles() []Role { return []Role{Instructions, Steps, Examples, Format} }

// Span is a part of a prompt that operators never cut.
type Span struct {
	Role Role
	Text string // without white space around it
	sep  string // white space that followed it where it was read
}

// Genome is a prompt in spans.
type Genome []Span

// String writes the prompt.
func (g Genome) String() string {
	var b strings.Builder
	for i, s := range g {
		b.WriteString(s.Text)
		if i == len(g)-1 {
			break
		}
		switch {
		case s.sep != "":
			b.WriteString(s.sep)
		case s.Role == Instructions && g[i+1].Role == Instructions:
			b.WriteString(" ")
		default:
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Words counts the words of the prompt.
func (g Genome) Words() int {
	n := 0
	for _, s := range g {
		n += len(strings.Fields(s.Text))
	}
	return n
}

// Parse splits a prompt. Its String is the text without white space around it.
func Parse(text string) Genome {
	text = strings.TrimSpace(text)
	var g Genome
	for text != "" {
		end := lineEnd(text)
		if exampleStart.MatchString(text) {
			end = blockEnd(text)
			g = append(g, Span{Role: Examples, Text: text[:end]})
		} else {
			g = appendSentences(g, text[:end])
		}
		rest := strings.TrimLeftFunc(text[end:], unicode.IsSpace)
		if last := &g[len(g)-1]; rest != "" {
			trimmed := strings.TrimRightFunc(last.Text, unicode.IsSpace)
			last.sep = last.Text[len(trimmed):] + text[end:len(text)-len(rest)]
			last.Text = trimmed
		}
		text = rest
	}
	return g
}

var (
	exampleStart = regexp.MustCompile(`^(?i)(?:examples?\b[^.]*:|for example\b|q:|question:|input:)`)
	stepStart    = regexp.MustCompile(`^(?i)(?:\d+[.)]|[-*•]|step \d+|first,|then,?|next,|finally,)\s`)
	formatWord   = regexp.MustCompile(`(?i)####|\\boxed|\bjson\b|\b(?:final )?answer\b.*\b(?:format|line|only|end|as|after|form)\b|\b(?:end|finish|close)\b.*\banswer\b`)
)

func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// blockEnd returns where the first empty line begins.
func blockEnd(text string) int {
	at := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			break
		}
		at += len(line)
	}
	return len(strings.TrimRightFunc(text[:at], unicode.IsSpace))
}

// appendSentences splits a line into sentences.
func appendSentences(g Genome, line string) Genome {
	for line != "" {
		end, next := sentenceEnd(line)
		g = append(g, Span{Role: roleOf(line[:end]), Text: line[:end], sep: line[end:next]})
		line = line[next:]
	}
	return g
}

// sentenceEnd returns where the first sentence of a line ends, and where the next begins.
func sentenceEnd(line string) (end, next int) {
	from := 0
	if m := stepStart.FindString(line); m != "" {
		from = len(m) // the dot of "1. " ends no sentence
	}
	for i := from; i < len(line)-1; i++ {
		if !strings.ContainsRune(".!?", rune(line[i])) {
			continue
		}
		rest := strings.TrimLeftFunc(line[i+1:], unicode.IsSpace)
		if first, _ := utf8.DecodeRuneInString(rest); rest != "" && len(rest) < len(line)-i-1 && !unicode.IsLower(first) {
			return i + 1, len(line) - len(rest)
		}
	}
	return len(line), len(line)
}

func roleOf(sentence string) Role {
	switch {
	case formatWord.MatchString(sentence):
		return Format
	case stepStart.MatchString(sentence):
		return Steps
	default:
		return Instructions
	}
}

// Of returns a genome of separate spans, such as the phrases of a plan file.
func Of(texts ...string) Genome {
	var g Genome
	for _, t := range texts {
		g = append(g, Parse(t)...)
	}
	return g.loose()
}

// loose removes the white space after spans, so that they fit anywhere.
func (g Genome) loose() Genome {
	out := slices.Clone(g)
	for i := range out {
		out[i].sep = ""
	}
	return out
}
