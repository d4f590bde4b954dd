package diplomacy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

var (
	unitHead    = regexp.MustCompile(`^([AF] \S+), (?:inland|coast|sea)`)
	retreatLine = regexp.MustCompile(`(?m)^([AF] \S+): can retreat to (\w+)`)
	builtUnit   = regexp.MustCompile(`[AF] [A-Z/]{3,6} [BD]\b`)
)

// scripted answers every kind of question in few words, and moves. It does not use the stand-in, so
// that prompts do not change with it.
func scripted() answerer {
	n := 0
	return func(c world.Call) world.Reply {
		n++
		if c.Ask.Schema.Name == "diplomacy_promises" {
			return reply(map[string]any{"promises": []any{}})
		}
		last := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
		orders := []string{}
		for _, m := range retreatLine.FindAllStringSubmatch(last, -1) {
			orders = append(orders, m[1]+" R "+m[2])
		}
		if c.Label == "builds" {
			orders = builtUnit.FindAllString(last, -1)
		}
		unit := ""
		for line := range strings.Lines(last) {
			if m := unitHead.FindStringSubmatch(line); m != nil {
				unit = m[1]
			} else if moves, ok := strings.CutPrefix(line, " moves: "); ok {
				list := strings.Split(moves, ", ")
				to, _, _ := strings.Cut(list[(n+len(orders))%len(list)], " ")
				orders = append(orders, unit+" - "+strings.FieldsFunc(to, func(r rune) bool { return strings.ContainsRune("*[\n", r) })[0])
			}
		}
		if n%10 == 0 && c.Label == "orders" {
			orders = append([]string{"A PAR - NOWHERE"}, orders[1:]...)
		}
		to := rules.PowerNames()[n%7]
		return reply(map[string]any{
			"reason": "Forward.", "orders": orders, "vote": voteContinue, "text": "Go on as before.", "diary": "All as planned.", "goals": []string{"Grow.", "Survive."},
			"relations": []map[string]string{{"power": to, "relation": "friendly"}}, "messages": []map[string]string{{"to": to, "text": fmt.Sprintf("Shall we agree on point %d?", n)}},
		})
	}
}

// replacing returns the standard templates with some replaced.
func replacing(texts map[string]string) (s *promptSet, err error) {
	s = standardPrompts().with(texts, func(name string, bad error) { err = errors.Join(err, fmt.Errorf("%s: %w", name, bad)) })
	return s, err
}

// TestPrompts compares the first prompt of every kind with testdata/prompts.golden. A change of a
// prompt changes the game: increase promptVersion.
func TestPrompts(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, scripted(), func(p *Params) {
		p.MaxYear, p.Rounds, p.Planning, p.Judge, p.DrawFrom = 1903, 2, true, true, 1902
	})
	retreats := playGame(t, 1, world.Lineup{}, scripted(), func(p *Params) { p.Position, p.EndPhase = beaten(), "S1902R" })
	p.calls = append(p.calls, retreats.calls...)
	seen := map[string]bool{}
	var b strings.Builder
	fmt.Fprintf(&b, "version %d\n", promptVersion)
	for _, c := range p.calls {
		form := c.Label
		if c.Ask.Schema != nil {
			form += " as " + c.Ask.Schema.Name
		}
		if round := strings.Contains(c.Ask.Messages[len(c.Ask.Messages)-1].Text(), "Round 2"); round {
			form += ", second round"
		}
		if seen[form] {
			continue
		}
		seen[form] = true
		fmt.Fprintf(&b, "\n======== %s of %s\n", form, c.Seat)
		for _, m := range c.Ask.Messages {
			fmt.Fprintf(&b, "---- %s\n%s\n", m.Role, m.Text())
		}
		fmt.Fprintf(&b, "---- schema\n%s\n", c.Ask.Schema.JSON)
	}
	for _, label := range []string{"start", "plan", "message", "orders", "again", "retreats", "builds", "results", "years", "promises"} {
		if callsByLabel(p)[label] == 0 {
			t.Errorf("the game has no call %s: choose another deal", label)
		}
	}
	testkit.Compare(t, "testdata/prompts.golden", b.String())
}

func TestFill(t *testing.T) {
	t.Parallel()
	s, err := replacing(map[string]string{promptTalk: "One {{power}}.\r\n\r\nTwo {{ goals }} and {{plan}}.\n\n\nThree.\nFour {{power}}{{power}}."})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"power": "{{goals}}", "goals": "win"}
	got := s.fill(promptTalk, func(name string) string { return values[name] })
	// A paragraph with an empty variable is left out, and a value is never read as a template.
	if want := "One {{goals}}.\n\nThree.\nFour {{goals}}{{goals}}."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if standardPrompts().fill(promptTalk, func(string) string { return "x" }) == got {
		t.Error("the standard set has changed")
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fine":                  "",
		"a\nb {{gaols}}":        "line 2: unknown variable {{gaols}}; want one of power,",
		"{{}}":                  "line 1: unknown variable {{}}",
		"{{goals}":              "line 1: a variable is written {{name}} on one line",
		"{{goals\n}}":           "line 1: a variable is written",
		"{{range .}}x{{end}}":   "unknown variable",
		"{{printf \"%s\" .X}}":  "unknown variable",
		"a\nYou are {power}.":   "line 2: {power} is in single braces: write {{power}}",
		"{{power}} and { end }": "{ end } is in single braces: write {{end}}",
		"{{gaols}}\n{{x}}":      "; line 2: unknown variable {{x}}",
		`{"power": "x"} {name}`: "",
		`{{{power}}}`:           "",
	} {
		switch _, err := parseTemplate(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := replacing(map[string]string{"order": "x"}); err == nil || !strings.Contains(err.Error(), "want one of rules, board") {
		t.Errorf("%v", err)
	}
	if _, err := replacing(map[string]string{promptOrders: "{{x}}"}); err == nil || !strings.Contains(err.Error(), "orders: line 1") {
		t.Errorf("%v", err)
	}
}

// TestEveryVariableIsUsed checks that standard templates use every variable.
func TestEveryVariableIsUsed(t *testing.T) {
	t.Parallel()
	s := standardPrompts()
	used := map[string]bool{}
	for _, name := range templateNames() {
		if s.fill(name, func(v string) string { used[v] = true; return "x" }) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for _, v := range variables() {
		if !used[v.Name] || v.Doc == "" {
			t.Errorf("%s: used %v, doc %q", v.Name, used[v.Name], v.Doc)
		}
	}
	files, err := templateFiles.ReadDir("text")
	if err != nil || len(files) != len(templateNames()) {
		t.Errorf("%d files for %d templates (%v)", len(files), len(templateNames()), err)
	}
	if !slices.Contains(templateNames(), promptJudge) {
		t.Error("no judge")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("{{goals}} {{")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := replacing(map[string]string{promptPlan: text})
		if err == nil {
			s.fill(promptPlan, func(string) string { return "{{x}}" })
		}
	})
}
