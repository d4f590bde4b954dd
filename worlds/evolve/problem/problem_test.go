package problem

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/world"
)

// folder holds files in memory, with YAML in its decoded form.
type folder map[string]string

func (f folder) Match(string) []string { return nil }

func (f folder) Text(name string) (string, error) {
	if text, ok := f[name]; ok {
		return text, nil
	}
	return "", errors.New(name + ": there is no such file")
}

func (f folder) YAML(string, any) (world.Document, error) { return nil, errors.New("not here") }

func fields() Fields {
	return Fields{Question: "question", Answer: "answer", ID: "id", Choices: "choices"}
}

func TestRead(t *testing.T) {
	t.Parallel()
	files := folder{
		"gsm8k.jsonl":  `{"question": "How many?", "answer": "First 3.\nThen 4.\n#### 1,234"}` + "\n\n" + `{"question": " Why? ", "answer": 3.50}`,
		"named.json":   `[{"id": "x1", "question": "Which?", "answer": "B", "choices": ["red", 2]}]`,
		"table.csv":    "\ufeffanswer, question\n3,\"What,\nthen?\"\ntrue,So?\n",
		"upper.JSONL":  `{"question": "q", "answer": "a"}`,
		"escaped.json": `[{"question": "a\nb", "answer": "c\td"}]`,
	}
	for name, want := range map[string][]Problem{
		"gsm8k.jsonl":  {{ID: "line-1", Question: "How many?", Answer: "1,234"}, {ID: "line-3", Question: "Why?", Answer: "3.50"}},
		"named.json":   {{ID: "x1", Question: "Which?", Answer: "B", Choices: []string{"red", "2"}}},
		"table.csv":    {{ID: "line-2", Question: "What,\nthen?", Answer: "3"}, {ID: "line-4", Question: "So?", Answer: "true"}},
		"upper.JSONL":  {{ID: "line-1", Question: "q", Answer: "a"}},
		"escaped.json": {{ID: "problem-1", Question: "a\nb", Answer: "c\td"}},
	} {
		got, err := Read(files, name, fields())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	files := folder{
		"a.jsonl": "{\"question\": \"q\", \"answer\": \"a\"}\n{\"question\": \"q\"",
		"b.jsonl": "{\"prompt\": \"q\", \"answer\": \"a\"}\n{\"question\": \"q\", \"answer\": null}\n{\"question\": \"q\", \"answer\": \"4 #### \"}",
		"c.json":  `{"question": "q"}`,
		"d.csv":   "question,answer\na,b,c\n",
		"e.csv":   "",
		"f.jsonl": "\n\n",
		"g.txt":   "x",
		"h.jsonl": `{"question": "q", "answer": "a"} {"question": "q", "answer": "a"}`,
		"i.jsonl": strings.Repeat("{}\n", 50),
	}
	for name, want := range map[string][]string{
		"a.jsonl": {"a.jsonl: line 2: want a JSON object"},
		"b.jsonl": {`b.jsonl: line 1: field "question" is to hold a question; there are: answer, prompt`, `line 2: field "answer" is to hold an answer`, `line 3: field "answer"`},
		"c.json":  {"c.json: want a list of objects"},
		"d.csv":   {"d.csv: record on line 2: wrong number of fields"},
		"e.csv":   {"e.csv: want a header"},
		"f.jsonl": {"f.jsonl: holds no problems"},
		"g.txt":   {"g.txt: want a file that ends in .jsonl, .json, .csv or .yaml"},
		"h.jsonl": {"h.jsonl: line 1: want a JSON object: there is more after the value"},
		"i.jsonl": {"line 10: "},
		"j.jsonl": {"there is no such file"},
	} {
		_, err := Read(files, name, fields())
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", name, err, w)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n") > maxFaults {
			t.Errorf("%s: too much: %v", name, err)
		}
	}
}

// TestSplit checks that the parts have the right sizes and no question in common, even if a file repeats questions.
func TestSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		made := func(label string, limit int) (all []Problem) {
			for range rapid.IntRange(0, limit).Draw(t, label) {
				n := rapid.IntRange(0, 20).Draw(t, "n")
				all = append(all, Problem{ID: fmt.Sprint(n % 3), Question: rapid.SampledFrom([]string{"What is %d?", "what  is %d?"}).Draw(t, "form"), Answer: "1"})
				all[len(all)-1].Question = fmt.Sprintf(all[len(all)-1].Question, n)
			}
			return all
		}
		all, test := made("all", 40), made("test", 20)
		sizes := Sizes{rapid.IntRange(0, 8).Draw(t, "train"), rapid.IntRange(0, 4).Draw(t, "validation"), rapid.IntRange(0, 8).Draw(t, "tests")}
		seed := rapid.Uint64().Draw(t, "seed")
		set, err := Split(all, test, sizes, seed)
		if err != nil {
			if !strings.Contains(err.Error(), "too few") {
				t.Fatal(err)
			}
			return
		}
		if len(set.Train) != sizes.Train || len(set.Validation) != sizes.Validation || len(set.Test) != sizes.Test {
			t.Fatalf("%d, %d, %d of %+v", len(set.Train), len(set.Validation), len(set.Test), sizes)
		}
		seen, ids := map[string]bool{}, map[string]bool{}
		for i, part := range [][]Problem{set.Train, set.Validation, set.Test} {
			for _, p := range part {
				id := fmt.Sprint(i == 2, p.ID) // two files may use the same
				if seen[normalize(p.Question)] || ids[id] {
					t.Fatalf("%+v is there twice", p)
				}
				seen[normalize(p.Question)], ids[id] = true, true
			}
		}
		if again, _ := Split(all, test, sizes, seed); !reflect.DeepEqual(again, set) {
			t.Fatal("the same seed splits in another way")
		}
	})
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	set := Arithmetic(1, Sizes{20, 5, 30}, 2, 4)
	if len(set.Train) != 20 || len(set.Validation) != 5 || len(set.Test) != 30 || set.Train[0].Answer == "" {
		t.Errorf("%+v", set)
	}
	if other := Arithmetic(2, Sizes{20, 5, 30}, 2, 4); reflect.DeepEqual(other, set) {
		t.Error("another seed makes the same problems")
	}
}
