package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type problem struct {
	Question string   `parquet:"question"`
	Answer   int64    `parquet:"answer"`
	Hints    []string `parquet:"hints,list"`
	Level    *float64 `parquet:"level,optional"`
}

// collect reads the rows of a file as texts.
func collect(ctx context.Context, path string, l limits) (texts []string, err error) {
	for row, err := range rowsWithin(ctx, path, l) {
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(row))
	}
	return texts, nil
}

func TestRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := 0.5
	if err := parquet.WriteFile(filepath.Join(dir, "p.parquet"), []problem{{"1+1", 2, []string{"two"}, &half}, {"2+2", 4, nil, nil}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "p.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.json":       `[{"q":1}, {"q":2}]`,
		"a.jsonl":      "{\"q\":1}\n\n{\"q\":2}",
		"a.yaml":       "- q: 1\n- q: 2\n",
		"empty.json":   `[]`,
		"no.json":      `{"q":1}`,
		"no.jsonl":     "{\"q\":1}\n{",
		"no.yaml":      "a: [",
		"no.csv":       "a,b",
		"no.parquet":   "PAR1 no",
		"bom.jsonl":    "\ufeff{\"q\":1}\r\n",
		"after.json":   "[1] 2",
		"cut.json":     "[1, 2",
		"merge.yaml":   "- &one {a: 1, b: 2}\n- &two\n  <<: *one\n  a: 3\n- <<: [*two, *one]\n  c: [1, x, null, true, 1.5]\n- !!str 7\n- 0x1F\n",
		"cycle.yaml":   "- &a [*a]\n",
		"unknown.yaml": "- *a\n",
		"twice.yaml":   "- {a: 1, a: 2}\n",
		"inf.yaml":     "- .inf\n",
		"two.yaml":     "- 1\n---\n- 2\n",
		"map.yaml":     "a: 1\n",
		"cut.parquet":  string(whole[:len(whole)/2]) + string(whole[len(whole)-8:]),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, want, err string }{
		{"a.json", `[{"q":1} {"q":2}]`, ""},
		{"a.jsonl", `[{"q":1} {"q":2}]`, ""},
		{"a.yaml", `[{"q":1} {"q":2}]`, ""},
		{"p.parquet", `[{"answer":2,"hints":["two"],"level":0.5,"question":"1+1"} {"answer":4,"hints":[],"level":null,"question":"2+2"}]`, ""},
		{"empty.json", "", "has no rows"},
		{"no.json", "", "want a list of rows"},
		{"no.jsonl", "", "line 2: is not JSON"},
		{"no.yaml", "", "no.yaml: "},
		{"no.csv", "", "the name must end in"},
		{"no.parquet", "", "no.parquet: "},
		{"cut.parquet", "", "cut.parquet: "},
		{"missing.json", "", "no such file"},
		{".", "", "is a folder, not a regular file"},
		{"bom.jsonl", `[{"q":1}]`, ""},
		{"after.json", "", "want one list of rows"},
		{"cut.json", "", "unexpected EOF"},
		{"merge.yaml", `[{"a":1,"b":2} {"a":3,"b":2} {"c":[1,"x",null,true,1.5],"a":3,"b":2} "7" 31]`, ""},
		{"cycle.yaml", "", "row 1: line 1: *a is inside &a itself"},
		{"unknown.yaml", "", "row 1: line 1: *a refers to nothing"},
		{"twice.yaml", "", "row 1: line 1: is given twice"},
		{"inf.yaml", "", "row 1: "},
		{"two.yaml", "", "want one list of rows"},
		{"map.yaml", "", "want one list of rows"},
	} {
		texts, err := collect(t.Context(), filepath.Join(dir, c.name), standard())
		if got := fmt.Sprint(texts); c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %s %v", c.name, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
}
