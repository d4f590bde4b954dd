package label

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// table writes a file.
func table(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadTable: both formats give the same labels, and labels that the run has are not added again.
func TestReadTable(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	for _, path := range []string{
		table(t, "a.CSV", "\ufeffepisode,verdict,tag,note,by,call\r\n0,pass,,,ann,\r\n 2 ,,rude,\"two\nlines, and more\",ann,1:0\r\n2,,rude,\"two\nlines, and more\",ann,1:0\r\n"),
		table(t, "a.jsonl", `{"run":"r1","episode":0,"call":null,"verdict":"pass","by":"ann","at":"2026-01-02T03:04:05Z"}`+"\n\n"+`{"episode":2,"tag":"rude ","note":"two\nlines, and more","by":"ann","call":"1:0"}`),
	} {
		labels, err := ReadTable(t.Context(), path, "r1", 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := Add(run, read(t, run).New(labels)...); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for _, l := range read(t, run).All {
		got += fmt.Sprintf("%s %d %s %s %q %q %s\n", l.Run, l.Episode, l.Verdict, l.Call, l.Tag, l.Note, l.By)
	}
	if want := "r1 0 pass  \"\" \"\" ann\nr1 2  1:0 \"rude\" \"two\\nlines, and more\" ann\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBadTable: an error names the line, and nothing of the table is taken.
func TestBadTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a.csv", "", "a.csv:1: the file is empty"},
		{"a.csv", "episode,tag\n", "a.csv: has no labels"},
		{"a.csv", "tag\nx\n", "a.csv:1: there is no column episode"},
		{"a.csv", "episode,mark\n0,x\n", `a.csv:1: unknown column "mark"; want some of at, by, call, episode, note, run, tag, verdict`},
		{"a.csv", "episode,tag,tag\n0,x,y\n", "a.csv:1: the column tag is there twice"},
		{"a.csv", "episode,tag\n0,x\n1,\"a\nb\",c\n", "a.csv:3: wrong number of fields"},
		{"a.csv", "episode,tag\n0,x\n\"one\",y\n", `a.csv:3: episode: want a whole number, found "one"`},
		{"a.csv", "episode,tag\n,x\n", "a.csv:2: the episode is missing"},
		{"a.csv", "episode,verdict\n3,pass\n", "a.csv:2: there is no episode 3: the run has 3, and the first is 0"},
		{"a.csv", "episode,verdict\n-1,pass\n", "a.csv:2: the label cannot be added: there is no episode -1"},
		{"a.csv", "episode,verdict\n1,good\n", `a.csv:2: the label cannot be added: unknown verdict "good"; want one of [pass fail unsure]`},
		{"a.jsonl", `{"episode":1,"tag":"x"}` + "\n" + `{"episode":1}`, "a.jsonl:2: the label cannot be added: a label needs a tag, a verdict or a note"},
		{"a.jsonl", `{"episode":1,"tag":"x","run":"r2"}`, `a.jsonl:1: the label is of the run "r2", not of r1`},
		{"a.jsonl", `{"episode":1,"tags":"x"}`, `a.jsonl:1: unknown field "tags"; did you mean tag?`},
		{"a.jsonl", "\x00", "a.jsonl:1: column 1: not valid JSON"},
		{"a.txt", "x", `want .csv or .jsonl`},
	} {
		labels, err := ReadTable(t.Context(), table(t, c.name, c.text), "r1", 3)
		if err == nil || !strings.Contains(err.Error(), c.want) || labels != nil {
			t.Errorf("%q: %v, %v, want %s", c.text, labels, err, c.want)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add("a.csv", "episode,tag\n0,x\n")
	f.Add("a.jsonl", `{"episode":1,"tag":"x"}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		if name != "a.csv" {
			name = "a.jsonl"
		}
		labels, err := ReadTable(t.Context(), table(t, name, text), "r1", 3)
		for _, l := range labels {
			if bad := l.check(); bad != nil || l.Episode > 2 || err != nil {
				t.Errorf("%+v: %v, %v", l, bad, err)
			}
		}
	})
}
