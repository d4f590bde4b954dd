package evolve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/world"
)

// TestTree checks that the first parents are the trunk, that other parents are drawn beside it, and that a lineage of
// any shape is drawn.
func TestTree(t *testing.T) {
	t.Parallel()
	at := func(id int, parents ...int) Ancestor {
		return Ancestor{Prompt: Prompt{ID: id, Parents: parents, Operator: "a<b&c"}}
	}
	line := []Ancestor{at(0), at(1), at(4, 0, 1), at(7, 4, 0), at(9, 7, 1)}
	var ids []int
	for _, a := range trunkOf(line) {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(ids, []int{0, 4, 7, 9}) {
		t.Errorf("trunk %v", ids)
	}
	svg := tree(line).SVG
	if n := strings.Count(svg, "<circle"); n != 4+2 || !strings.Contains(svg, "a&lt;b&amp;c") {
		t.Errorf("%d prompts are drawn, want 6: %s", n, svg)
	}
	long := []Ancestor{at(0)}
	for i := 1; i < 200; i++ {
		long = append(long, at(i, i-1))
	}
	if f := tree(long); strings.Count(f.SVG, "<circle") != maxRows || !strings.Contains(f.Alt, "160 more") {
		t.Error(f.Alt)
	}
	for _, odd := range [][]Ancestor{nil, {at(3, 3)}, {at(1, 2), at(2, 1)}, {at(5, 77, -1)}} {
		tree(odd)
	}
}

// TestLineageIsInert checks that a prompt in the lineage cannot leave its code block or hide anything.
func TestLineageIsInert(t *testing.T) {
	t.Parallel()
	v := &Verdict{Lineage: []Ancestor{{Prompt: Prompt{Operator: "<b>\n# x", Text: "a\r# forged\r\n```\n\u202eb\x1b[31m"}}}}
	text := lineageMarkdown(v)
	if strings.ContainsAny(text, "<\r\x1b\u202e") {
		t.Errorf("%q", text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "forged") && !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "# x") || strings.HasPrefix(line, "```") {
			t.Errorf("%q", line)
		}
	}
}

// TestStatusForgets checks that the status keeps only the prompts of the last generation and the best one.
func TestStatusForgets(t *testing.T) {
	t.Parallel()
	const population = 8
	s := &status{}
	for id := range 9 * population {
		generation := id / population
		data := fmt.Sprintf(`{"id":%d,"text":"a","generation":%d,"purpose":"race","results":[{"asked":1,"correct":%d}]}`, id, generation, min(1, id%3))
		s.Add(world.Played{Spec: world.Spec{Params: json.RawMessage(`{"fitness":{"by":"accuracy"}}`)}, Outcome: world.Outcome{Data: json.RawMessage(data)}})
		if n := len(s.all[0].prompts); n > population+1 {
			t.Fatalf("%d prompts are kept of a population of %d", n, population)
		}
	}
	if best := s.all[0].best(); best.ID != 1 {
		t.Errorf("the best is prompt %d, want the first with full fitness, 1", best.ID)
	}
}

// TestBeyond checks that a negative gain is formatted as less, without a minus.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Estimate{
		"0.20 [0.10, 0.30] more than the best baseline":  {Value: 0.2, Low: 0.1, High: 0.3, N: 9},
		"0.20 [-0.10, 0.50] less than the best baseline": {Value: -0.2, Low: -0.5, High: 0.1, N: 9},
		"0.20 less than the best baseline":               {Value: -0.2, Low: 0, High: 0, N: 1},
		"0.00 [-0.10, 0.10] more than the best baseline": {Value: 0, Low: -0.1, High: 0.1, N: 9},
	} {
		if got := beyond(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// TestStoryOfChanges checks that a text that only moved is not told as gone and new.
func TestStoryOfChanges(t *testing.T) {
	t.Parallel()
	for diff, want := range map[string]string{
		"- a\n  b\n+ a\n":              "moved: a",
		"- a\n+ b\n":                   "gone: a, new: b",
		"- a\n- a\n  c\n+ a\n":         "gone: a, moved: a",
		"+ a\n  a\n+ a\n- b\n+ b\nx\n": "new: a, new: a, moved: b",
		"- a\n- a\n":                   "gone: a, gone: a",
		"":                             "",
	} {
		s := &account{}
		s.frame("x")
		s.changes(diff)
		var got []string
		for _, l := range s.frames[0].Lines {
			got = append(got, l.Who+": "+l.Text)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%q: %s, want %s", diff, text, want)
		}
	}
	made := origin(&Prompt{Parents: []int{3, 3}, Operator: "single_point+insert"})
	if made != "Made from prompt 3 by single point and insert" {
		t.Error(made)
	}
}
