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

// templateVariable is a variable of templates, and its value in a prompt.
type templateVariable struct {
	Name, Doc string
	value     func(c promptContext) string
}

// variables lists all variables. One that does not apply is empty.
func variables() []templateVariable {
	return []templateVariable{
		{"power", "the power that answers, such as France", func(c promptContext) string { return c.player.power.Name() }},
		{"phase", "the current phase, such as S1901M (spring 1901, movement)", func(c promptContext) string { return c.phaseText() }},
		{"scoring", "the scoring, in a sentence", func(c promptContext) string { return scoringText(c.Scoring) }},
		{"end", "when the game ends, in a sentence", func(c promptContext) string { return fmt.Sprintf("The last phase is %s.", c.until) }},
		{"position", "units and centres of every power, a line each", func(c promptContext) string { return c.brief.board }},
		{"last_phase", "the last movement phase", func(c promptContext) string { return c.last.phase }},
		{"last", "its orders and their results, a line for each power", func(c promptContext) string { return c.last.text }},
		{"goals", "the power's goals, a line each", func(c promptContext) string { return bullets(c.player.goals) }},
		{"relations", "its relations with the others", func(c promptContext) string { return c.relationsText(c.player) }},
		{"diary", "its diary: a summary of earlier years, then entries", func(c promptContext) string { return c.player.diary.text() }},
		{"plan", "its plan from before the talks, with planning", func(c promptContext) string { return c.player.plan }},
		{"messages", "the messages of this turn, or of the last turn in a review of results; only those that the power may read", func(c promptContext) string {
			return messageLines(c.player.power, c.mail.readableBy(c.messages, c.player.power))
		}},
		{"unanswered", "the powers that have not answered it", func(c promptContext) string { return c.unanswered(c.player) }},
		{"returned", "its last messages that could not be delivered", func(c promptContext) string { return c.player.returned }},
		{"round", "the number of the round of talks", func(c promptContext) string { return fmt.Sprint(c.round) }},
		{"rounds", "the maximum number of rounds", func(c promptContext) string { return fmt.Sprint(c.Rounds) }},
		{"max_messages", "the maximum number of messages in a round", func(c promptContext) string { return fmt.Sprint(c.Messages) }},
		{"options", "the legal orders of its units", func(c promptContext) string { return c.optionsText() }},
		{"vote", "how to vote on ending the game, if that is possible now", func(c promptContext) string { return c.voteText(c.player) }},
		{"wrong", "orders that were illegal, and why", func(c promptContext) string { return c.wrong }},
		{"changes", "what the power gained and lost", func(c promptContext) string { return c.player.changes }},
		{"summary", "the summary of earlier years of the diary", func(c promptContext) string { return c.player.diary.years }},
		{"entries", "the entries to add to the summary", func(c promptContext) string { return c.entries }},
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

// with returns the set with some templates replaced. It reports those that cannot be read.
func (s *promptSet) with(texts map[string]string, report func(name string, err error)) *promptSet {
	if len(texts) == 0 {
		return s
	}
	out := &promptSet{parts: maps.Clone(s.parts)}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		p, err := readTemplate(name, texts[name])
		if err != nil {
			report(name, err)
		}
		out.parts[name] = p
	}
	return out
}

// readTemplate reads a template by its name, which must be one of ours.
func readTemplate(name, text string) ([]paragraph, error) {
	if !slices.Contains(templateNames(), name) {
		return nil, fmt.Errorf("unknown template %.40q; want one of %s", name, strings.Join(templateNames(), ", "))
	}
	return parseTemplate(text)
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
