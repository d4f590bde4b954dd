package bulk

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/answer"
	"parley/llm"
)

// FuzzParse parses arbitrary lines as requests: the parser must not panic, and an accepted line can be asked and
// recorded.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"x"}`, `{"id":1,"messages":[{"role":"user","content":"x"}]}`, `{"id":"a","prompt":"","schema":{}}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}]}]}`,
		`{"prompt":"x","files":["a.pdf","../b"]}`,
		`{"prompt":"x","schema":{"schema":{}}}`, `{"id":-0.5e3,"prompt":"x"}`, `null`, `{"schema":{"schema":null},"prompt":"x"}`, "",
	} {
		f.Add([]byte(s))
	}
	d := Defaults{Req: llm.Request{Model: "sim/small"}, Schemas: &answer.Compiler{}, Open: OpenIn(f.Context(), f.TempDir())}
	f.Fuzz(func(t *testing.T, line []byte) {
		q, err := d.parse(line, 3)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		r := Record{ID: q.ID, Digest: digestOf(q.Req).String(), Response: &llm.Response{Text: "x"}}
		b, err := r.bytes()
		if err != nil {
			t.Fatal(err)
		}
		old, err := readRecord(bytes.TrimSuffix(b, []byte("\n")))
		if err != nil || !old.ok || !bytes.Equal(old.id, q.ID) || old.digest != digestOf(q.Req) {
			t.Errorf("%s is read back as %+v, %v", b, old, err)
		}
	})
}

// FuzzOpenOut opens arbitrary files as outputs: it must not panic, and must not change a file that it refuses.
func FuzzOpenOut(f *testing.F) {
	whole, err := (&Record{ID: json.RawMessage(`"a"`), Digest: strings.Repeat("0", 32), Response: &llm.Response{}}).bytes()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", string(whole), string(whole) + `{"id"`, "notes", string(whole[:len(whole)-1]), "\n", `{"id":` + "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "out.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := OpenOut(t.Context(), path, NewKeyer())
		if err != nil {
			if got, err := os.ReadFile(path); err != nil || string(got) != string(text) {
				t.Errorf("refused and changed: %q became %q", text, got)
			}
			return
		}
		if _, err := o.Finish(false); err != nil {
			t.Fatal(err)
		}
		if o, err = OpenOut(t.Context(), path, NewKeyer()); err != nil {
			t.Fatalf("%q: cannot be opened again: %v", text, err)
		}
		if _, err := o.Finish(true); err != nil {
			t.Fatal(err)
		}
	})
}
