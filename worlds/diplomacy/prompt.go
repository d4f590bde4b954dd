package diplomacy

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// promptVersion is the version of the standard set. It increases with every change of a text.
const promptVersion = 1

//go:embed text/*.txt
var templateFiles embed.FS

// The names of the templates. The rules and the board begin every prompt and are the same for all
// powers. The template self and one of the others follow in a separate message.
const (
	promptRules   = "rules"
	promptBoard   = "board"
	promptSelf    = "self"
	promptStart   = "start"
	promptPlan    = "plan"
	promptTalk    = "talk"
	promptDecide  = "decide"
	promptOrders  = "orders"
	promptRetreat = "retreat"
	promptAdjust  = "adjust"
	promptAgain   = "again"
	promptReview  = "review"
	promptYears   = "years"
	promptJudge   = "judge"
)

// templateNames lists the templates in the order in which a game needs them.
func templateNames() []string {
	return []string{promptRules, promptBoard, promptSelf, promptStart, promptPlan, promptTalk, promptDecide, promptOrders, promptRetreat, promptAdjust, promptAgain, promptReview, promptYears, promptJudge}
}

// templateVariable is a variable of templates.
type templateVariable struct{ Name, Doc string }

// variables lists all variables. One that does not apply is empty.
func variables() []templateVariable {
	return []templateVariable{
		{"power", "the power that answers, such as France"},
		{"phase", "the current phase, such as S1901M (spring 1901, movement)"},
		{"scoring", "the scoring, in a sentence"},
		{"end", "when the game ends, in a sentence"},
		{"position", "units and centres of every power, a line each"},
		{"last_phase", "the last movement phase"},
		{"last", "its orders and their results, a line for each power"},
		{"goals", "the power's goals, a line each"},
		{"relations", "its relations with the others"},
		{"diary", "its diary: a summary of earlier years, then entries"},
		{"plan", "its plan from before the talks, with planning"},
		{"messages", "the messages of this turn, or of the last turn in a review of results; only those that the power may read"},
		{"unanswered", "the powers that have not answered it"},
		{"returned", "its last messages that could not be delivered"},
		{"round", "the number of the round of talks"},
		{"rounds", "the maximum number of rounds"},
		{"max_messages", "the maximum number of messages in a round"},
		{"options", "the legal orders of its units"},
		{"vote", "how to vote on ending the game, if that is possible now"},
		{"wrong", "orders that were illegal, and why"},
		{"changes", "what the power gained and lost"},
		{"summary", "the summary of earlier years of the diary"},
		{"entries", "the entries to add to the summary"},
	}
}

// promptSet is a set of templates, one for each moment of a game. It never changes, so any number
// of games can share one.
//
// A template is plain text with variables like {{goals}}. A paragraph with an empty variable is
// left out; there are no conditions, loops or functions. A value is never read as a template, so
// that no player can write into the instructions of another. A template with an unknown variable
// is refused when it is read, never during a game.
type promptSet struct{ parts map[string][]paragraph }

// paragraph is a text with variables: texts and names in turn, a text first.
type paragraph []string

var variableRE = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// standardPrompts returns the set that comes with Parley.
func standardPrompts() *promptSet {
	s := &promptSet{parts: map[string][]paragraph{}}
	for _, name := range templateNames() {
		b, err := templateFiles.ReadFile("text/" + name + ".txt")
		if err == nil {
			s.parts[name], err = parseTemplate(string(b))
		}
		if err != nil {
			panic(fmt.Sprintf("prompt: %s: %v", name, err)) // the file is part of the program, and tested
		}
	}
	return s
}

// with returns the set with some templates replaced.
func (s *promptSet) with(texts map[string]string) (*promptSet, error) {
	if len(texts) == 0 {
		return s, nil
	}
	out := &promptSet{parts: maps.Clone(s.parts)}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(templateNames(), name) {
			return nil, fmt.Errorf("unknown template %.40q; want one of %s", name, strings.Join(templateNames(), ", "))
		}
		p, err := parseTemplate(texts[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.parts[name] = p
	}
	return out, nil
}

// parseTemplate reads a template. Its error names the line.
func parseTemplate(text string) ([]paragraph, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if err := checkVariables(text); err != nil {
		return nil, err
	}
	var out []paragraph
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.Trim(block, "\n")
		if strings.TrimSpace(block) == "" {
			continue
		}
		var p paragraph
		at := 0
		for _, m := range variableRE.FindAllStringSubmatchIndex(block, -1) {
			p = append(p, block[at:m[0]], block[m[2]:m[3]])
			at = m[1]
		}
		out = append(out, append(p, block[at:]))
	}
	return out, nil
}

// singleBracesRE is a name in single braces.
var singleBracesRE = regexp.MustCompile(`\{\s*(\w+)\s*\}`)

// checkVariables checks that every variable of a text is known, that double braces match, and that no
// variable is in single braces. Other text in single braces, such as JSON, is allowed.
func checkVariables(text string) error {
	var names, bad []string
	for _, v := range variables() {
		names = append(names, v.Name)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		say := func(format string, args ...any) {
			bad = append(bad, fmt.Sprintf("line %d: ", number)+fmt.Sprintf(format, args...))
		}
		for _, m := range variableRE.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(names, m[1]) {
				say("unknown variable {{%.40s}}; want one of %s", m[1], strings.Join(names, ", "))
			}
		}
		rest := variableRE.ReplaceAllString(line, "")
		if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
			say("a variable is written {{name}} on one line")
			continue
		}
		for _, m := range singleBracesRE.FindAllStringSubmatch(rest, -1) {
			if slices.Contains(names, m[1]) {
				say("%s is in single braces: write {{%s}}", m[0], m[1])
			}
		}
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}

// fill returns a template with the values of its variables.
func (s *promptSet) fill(name string, value func(variable string) string) string {
	var b strings.Builder
	for _, p := range s.parts[name] {
		if text, ok := p.fill(value); ok {
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

// fill writes a paragraph, unless one of its variables is empty.
func (p paragraph) fill(value func(string) string) (string, bool) {
	var b strings.Builder
	for i, part := range p {
		if i%2 == 1 {
			if part = value(part); part == "" {
				return "", false
			}
		}
		b.WriteString(part)
	}
	return b.String(), true
}
