package diplomacy

import (
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	t.Parallel()
	s, err := standard().With(map[string]string{promptTalk: "One {{power}}.\r\n\r\nTwo {{ goals }} and {{plan}}.\n\n\nThree.\nFour {{power}}{{power}}."})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"power": "{{goals}}", "goals": "win"}
	got := s.Fill(promptTalk, func(name string) string { return values[name] })
	// A paragraph with an empty variable is left out, and a value is never read as a template.
	if want := "One {{goals}}.\n\nThree.\nFour {{goals}}{{goals}}."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if standard().Fill(promptTalk, func(string) string { return "x" }) == got {
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
		switch err := checkPrompt(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := standard().With(map[string]string{"order": "x"}); err == nil || !strings.Contains(err.Error(), "want one of rules, board") {
		t.Errorf("%v", err)
	}
	if _, err := standard().With(map[string]string{promptOrders: "{{x}}"}); err == nil || !strings.Contains(err.Error(), "orders: line 1") {
		t.Errorf("%v", err)
	}
}

// TestEveryVariableIsUsed checks that standard templates use every variable.
func TestEveryVariableIsUsed(t *testing.T) {
	t.Parallel()
	s := standard()
	used := map[string]bool{}
	for _, name := range promptNames() {
		if s.Fill(name, func(v string) string { used[v] = true; return "x" }) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for _, v := range variables() {
		if !used[v.Name] || v.Doc == "" {
			t.Errorf("%s: used %v, doc %q", v.Name, used[v.Name], v.Doc)
		}
	}
	files, err := texts.ReadDir("text")
	if err != nil || len(files) != len(promptNames()) {
		t.Errorf("%d files for %d templates (%v)", len(files), len(promptNames()), err)
	}
	if !slices.Contains(promptNames(), promptJudge) {
		t.Error("no judge")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("{{goals}} {{")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := standard().With(map[string]string{promptPlan: text})
		if err == nil {
			s.Fill(promptPlan, func(string) string { return "{{x}}" })
		}
	})
}
