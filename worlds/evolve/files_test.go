package evolve

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/world"
)

// TestFilesOfAVerdict: the best prompt is a file as it is, beside what is known about it; other
// episodes have none.
func TestFilesOfAVerdict(t *testing.T) {
	t.Parallel()
	l := (&lab{t: t, seed: 5}).run(with(little, models))
	v := l.verdict
	var all map[string]string
	for i, stage := range l.stages {
		for _, p := range stage {
			if all = (definition{}).Files(p, nil); (len(all) > 0) != (i == len(l.stages)-1) {
				t.Fatalf("stage %d: %v", i, all)
			}
		}
	}
	if all["best.txt"] != v.Winner.Text+"\n" {
		t.Errorf("%q", all["best.txt"])
	}
	var b best
	if err := json.Unmarshal([]byte(all["best.json"]), &b); err != nil || b.Prompt != v.Winner.Text || len(b.Test) != len(v.Test) || b.Lineage[len(b.Lineage)-1].ID != v.Winner.ID {
		t.Errorf("%v %s", err, all["best.json"])
	}
	if text := all["lineage.md"]; !strings.Contains(text, "by seed: fitness ") || !strings.Contains(text, "\n    + ") {
		t.Error(text)
	}
	for name, n := range map[string]int{"generations.csv": len(v.Generations), "operators.csv": len(v.Operators), "test.csv": len(v.Test)} {
		rows, err := csv.NewReader(strings.NewReader(all[name])).ReadAll()
		if err != nil || len(rows) != n+1 {
			t.Errorf("%s: %d rows, want %d; %v", name, len(rows), n+1, err)
		}
	}
}

// TestFilesOfAnything: names are no formulas, a verdict without a winner has its tables, and
// nothing that a file holds is a reason to panic.
func TestFilesOfAnything(t *testing.T) {
	t.Parallel()
	of := func(data string) map[string]string {
		return definition{}.Files(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}}, nil)
	}
	if all := of(`{"stopped":"x","winner":{"text":"y"},"test":[{"name":"=1+1"},{"name":"+2"}]}`); !strings.Contains(all["test.csv"], "\n'=1+1,") || !strings.Contains(all["test.csv"], "\n'+2,") {
		t.Error(all["test.csv"])
	}
	if all := of(`{"stopped":"failures"}`); len(all) != 2 {
		t.Error(all)
	}
	for _, data := range []string{``, `null`, `[]`, `{"stopped":"x","winner":{"text":"a"},"lineage":[{"id":3,"parents":[3]},{"id":-1,"parents":[9,9]}],"generations":[{}]}`} {
		of(data)
	}
}

// TestTree: the winner's first parents are its trunk, each other parent is drawn beside, and
// a line of any shape is drawn.
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
		t.Errorf("%d prompts are drawn: %s", n, svg)
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

// TestLineageIsInert: a prompt in the lineage neither leaves its block nor hides anything.
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
