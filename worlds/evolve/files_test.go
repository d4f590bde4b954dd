package evolve

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"parley/world"
)

// TestFilesOfAVerdict checks the files of a verdict, and that other episodes have none.
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
	var b struct {
		Prompt  string
		Test    []Tested
		Lineage []Ancestor
	}
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

// TestFilesOfAnything checks that a verdict without a winner has its tables, and that
// hostile data causes no panic.
func TestFilesOfAnything(t *testing.T) {
	t.Parallel()
	of := func(data string) map[string]string {
		return definition{}.Files(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}}, nil)
	}
	if all := of(`{"stopped":"failures"}`); len(all) != 2 {
		t.Error(all)
	}
	for _, data := range []string{``, `null`, `[]`, `{"stopped":"x","winner":{"text":"a"},"lineage":[{"id":3,"parents":[3]},{"id":-1,"parents":[9,9]}],"generations":[{}]}`} {
		of(data)
	}
}
