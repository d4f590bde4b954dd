// Package genome splits prompts into spans, and changes and combines them. A span is a sentence, a step, an example or a
// sentence about the form of the answer.
//
// A prompt that is parsed and written again is unchanged. Operators never cut inside a span, so the results still read as
// sentences. They draw only from the generator that they are given, and never write to their arguments.
//
// It also picks parents by their fitness (selection.go). Which prompts survive, and what a model changes in them, is up to
// package evolve.
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

// FromTexts returns a genome of separate spans, such as the phrases of a plan file.
func FromTexts(texts ...string) Genome {
	var g Genome
	for _, t := range texts {
		g = append(g, Parse(t)...)
	}
	return g.withoutSpacing()
}

// withoutSpacing removes the white space after spans, so that they fit anywhere.
func (g Genome) withoutSpacing() Genome {
	out := slices.Clone(g)
	for i := range out {
		out[i].sep = ""
	}
	return out
}

// Diversity returns the mean distance between any two of the prompts, from 0 to 1. It is 0 for fewer than two prompts.
func Diversity(all []Genome) float64 {
	pairs := make([]map[string]bool, len(all))
	for i, g := range all {
		pairs[i] = g.pairs()
	}
	sum, n := 0.0, 0
	for i := range pairs {
		for j := range i {
			sum += distance(pairs[i], pairs[j])
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// distance returns 1 less the share of pairs that both have.
func distance(a, b map[string]bool) float64 {
	common := 0
	for p := range a {
		if b[p] {
			common++
		}
	}
	all := len(a) + len(b) - common
	if all == 0 {
		return 0
	}
	return 1 - float64(common)/float64(all)
}

// pairs returns the pairs of neighbouring words. The first and the last word are also paired with nothing.
func (g Genome) pairs() map[string]bool {
	out := map[string]bool{}
	before := ""
	for word := range strings.FieldsSeq(strings.ToLower(g.String())) {
		out[before+" "+word] = true
		before = word
	}
	if before != "" {
		out[before+" "] = true
	}
	return out
}

// Diff returns the difference of two prompts, with a line for each span. A line begins with + if the span is new, with -
// if it is gone, and with a space if it stayed.
func Diff(from, to Genome) string {
	// length[i][j] is the number of spans that from[i:] and to[j:] have in common, in order.
	length := make([][]int, len(from)+1)
	for i := range length {
		length[i] = make([]int, len(to)+1)
	}
	for i, a := range slices.Backward(from) {
		for j, b := range slices.Backward(to) {
			if a.Text == b.Text {
				length[i][j] = 1 + length[i+1][j+1]
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var b strings.Builder
	line := func(sign, text string) {
		b.WriteString(sign + " " + strings.ReplaceAll(text, "\n", "\n"+sign+" ") + "\n")
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i].Text == to[j].Text:
			line(" ", from[i].Text)
			i, j = i+1, j+1
		case j == len(to) || i < len(from) && length[i+1][j] >= length[i][j+1]:
			line("-", from[i].Text)
			i++
		default:
			line("+", to[j].Text)
			j++
		}
	}
	return b.String()
}

// Phrases returns spans of every role that are useful for many problems. Mutations draw from them.
func Phrases() []Span {
	var all []Span
	for _, p := range []struct {
		role  Role
		texts []string
	}{
		{Instructions, []string{
			"Work through the problem step by step.",
			"Read the question twice before you begin.",
			"Say in your own words what is asked.",
			"You are a careful and patient problem solver.",
			"Ignore anything that is irrelevant to the question.",
			"Be brief.",
			"Show your work.",
			"Keep a running total as you go.",
			"Take what happens in the order in which it happens.",
			"Write an equation before you calculate.",
			"Name the unit of every number.",
			"Estimate the result roughly before you calculate it.",
			"Explain your reasoning to somebody who is new to the subject.",
			"Do not guess.",
			"Look at the problem from two sides.",
		}},
		{Steps, []string{
			"- List the facts that are given.",
			"- Calculate one step at a time.",
			"- Check the result against the question.",
			"- Write down what is known and what is wanted.",
			"- Draw a small table where it helps.",
			"- Verify each calculation by doing it the other way round.",
		}},
		{Format, []string{
			"End with the final answer on a line of its own after ####.",
			"Close with the words Answer: and the answer as a number.",
			"Give the final answer only once, at the end.",
		}},
	} {
		for _, t := range p.texts {
			all = append(all, Span{Role: p.role, Text: t})
		}
	}
	return all
}

// Seeds returns the prompts to begin with if a plan file has none.
func Seeds() []string {
	return []string{
		"Solve the problem.",
		"Let us go through this slowly and come to the right result.",
		"You are good at mathematics. Answer the question.",
		"Find out what is asked, then work it out.\n- Write down what is known and what is wanted.",
		"Break the problem into parts and solve each part.",
		"Think about what happens first and what happens later.\nGive the final answer only once, at the end.",
		"Be brief. Give the result.",
		"Explain your reasoning, then state the answer as a number at the end.",
	}
}
