package cli

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

var (
	tagRE   = regexp.MustCompile(`<[^>]*>`)
	blockRE = regexp.MustCompile(`<(figure|tr|h2|h3|li|figcaption|details|svg class="chart)[ >]`)
	talkRE  = regexp.MustCompile(`<div class="said [^"]*marked`)
)

// TestReportOfKinds compares the texts of a page for a small run of each kind: titles, legends, ticks, labels
// and cells.
func TestReportOfKinds(t *testing.T) {
	t.Parallel()
	sequential(t)
	for name, c := range map[string]struct {
		plan string
		set  []string
	}{
		"diplomacy": {"diplomacy.yaml", []string{"episodes=2", "params.max_year=1901", "params.rounds=1"}},
		"secrets":   {"secrets-tournament.yaml", []string{"episodes=2", "params.rounds=2"}},
		"scenario":  {"scenario/plan.yaml", []string{"episodes=3"}},
		"evolve":    {"evolve.yaml", []string{"params.max_generations=2", "params.population_size=4", "params.problems.test=10", "params.problems.train=8", "params.problems.validation=8"}},
		"rollout":   {"rollout-maze.yaml", []string{"episodes=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, page := filepath.Join(dir, "run.parley"), filepath.Join(dir, "run.html")
			args := []string{"run", "../../examples/" + c.plan, "--out", file, "--quiet"}
			for _, set := range c.set {
				args = append(args, "--set", set)
			}
			parley(t, State{}, args...).want(t, exit.OK)
			parley(t, State{}, "report", file, "--html", page, "--transcripts", "1").want(t, exit.OK)
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "report-"+name, words(section(string(b), "scores")+section(string(b), "kind")))
			if marked := talkRE.Match(b); marked != (name == "secrets") {
				t.Errorf("messages are marked: %v", marked)
			}
			if _, talk, _ := strings.Cut(string(b), `<details class="talk"`); !strings.Contains(talk, `<div class="replay"`) {
				t.Error("the first transcript has no story")
			}
			shown := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout
			if marked := strings.Contains(shown, "  * gives its own secret away ("); marked != (name == "secrets") {
				t.Errorf("show marks messages: %v", marked)
			}
		})
	}
}

// section returns a part of a page.
func section(page, id string) string {
	_, rest, _ := strings.Cut(page, `<section id="`+id+`">`)
	part, _, _ := strings.Cut(rest, `<section id="`)
	return part
}

// words returns the texts of a page, one line for each row and block, except those about time.
func words(page string) string {
	blocks := strings.SplitAfter(page, "</figure>")
	page = strings.Join(slices.DeleteFunc(blocks, func(b string) bool { return strings.Contains(b, "seconds") }), "")
	page = blockRE.ReplaceAllString(page, "\n$0")
	page = html.UnescapeString(tagRE.ReplaceAllString(page, " "))
	var lines []string
	for line := range strings.Lines(page) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
