package bulk

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/internal/ask/answer"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/world"
)

// TestScanIsStrict checks that what scan reads is what a strict decoder reads, for lines and for lines
// with a wrong byte.
func TestScanIsStrict(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"id":"q1","prompt":"say \"hi\"\n","system":"é","model":"a/b","max_tokens":12,"temperature":0.5}`,
		`{"id":7,"messages":[{"role":"user","content":"hi"}],"max_tokens":1}`,
		`{"prompt":"hi","promt":"ho"}`, `{"prompt":null,"id":null}`, `{"prompt":"a","prompt":"b"} x`,
	} {
		for i := range len(line) {
			for _, c := range []string{line[i : i+1], "", "\\", `"`, "{", "}", "[", "]", ",", "0", "-", ".", "A", "n", "\xff", " ", "1e2"} {
				b := []byte(line[:i] + c + line[i+1:])
				var got, want RequestLine
				if !got.scan(b) {
					continue
				}
				if string(got.ID) == "null" {
					got.ID = nil
				}
				err := world.DecodeStrict(b, &want)
				if string(want.ID) == "null" {
					want.ID = nil
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("scan(%s) = %+v; strictly: %+v, %v", b, got, want, err)
				}
			}
		}
	}
}

// TestOutIsALink: what belongs to the file is beside the file that a link leads to, also if that was missing.
func TestOutIsALink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink("real.jsonl", link); err != nil {
		t.Skip(err)
	}
	for range 2 {
		o, err := OpenOut(t.Context(), link, Keyer{})
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, "real.jsonl"); o.path != want {
			t.Errorf("%s, want %s", o.path, want)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// write writes files into a folder.
func write(t *testing.T, folder string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLineFiles: a line names files of the folder of its file, and their content says what they are.
func TestLineFiles(t *testing.T) {
	t.Parallel()
	outside, folder := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.pdf": llmtest.PDF})
	write(t, folder, map[string]string{
		"a.pdf": llmtest.PDF, "in/b.txt": llmtest.WAV, "c.pdf": "\x89PNG\r\n\x1a\n", "d.mp3": "ID3\x04", "e.pdf": "plain text",
	})
	if err := os.Symlink(filepath.Join(outside, "secret.pdf"), filepath.Join(folder, "link.pdf")); err != nil {
		t.Skip(err)
	}
	d := Defaults{Req: llm.Request{Model: "sim/small"}, Schemas: &answer.Compiler{}, Open: OpenIn(t.Context(), folder)}
	q, err := d.parse([]byte(`{"prompt":"What?","system":"Be brief.","files":["a.pdf","in/b.txt","c.pdf","d.mp3"]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	parts := q.Req.Messages[1].Parts
	if len(parts) != 5 || parts[1].File.Name != "a.pdf" || !bytes.Equal(parts[1].File.Data, []byte(llmtest.PDF)) ||
		parts[2].File.MediaType != llm.MediaWAV || parts[3].Image.MediaType != "image/png" || parts[4].File.MediaType != llm.MediaMP3 {
		t.Errorf("%+v", parts)
	}
	for line, want := range map[string]string{
		`{"prompt":"x","files":["e.pdf"]}`:                                        "files[0]: ",
		`{"prompt":"x","files":["a.pdf","missing.pdf"]}`:                          "files[1]: ",
		`{"prompt":"x","files":["in"]}`:                                           "files[0]: ",
		`{"prompt":"x","files":["link.pdf"]}`:                                     "is not in the folder of the requests",
		`{"prompt":"x","files":["../` + filepath.Base(outside) + `/secret.pdf"]}`: "is not in the folder of the requests",
		`{"messages":[{"role":"assistant","content":"x"}],"files":["a.pdf"]}`:     "the last message must be the user's",
		`{"prompt":"x","files":"a.pdf"}`:                                          "files",
	} {
		if _, err := d.parse([]byte(line), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	large := make([]byte, llm.MaxFileBytes/4)
	opened := 0
	d.Open = func(string) (llm.Part, error) {
		opened++
		return llm.Part{Image: &llm.Image{Data: large}}, nil
	}
	if _, err := d.parse([]byte(`{"prompt":"x","files":["a","a","a","a"]}`), 7); err != nil {
		t.Error(err)
	}
	if _, err := d.parse([]byte(`{"prompt":"x","files":["a","a","a","a","b","c","d"]}`), 7); err == nil || !strings.Contains(err.Error(), "files[4]: with b, the files of the request have more than") || opened != 9 {
		t.Errorf("%v, %d opened", err, opened)
	}
	if _, err := (Defaults{Req: d.Req, Schemas: d.Schemas, Open: OpenIn(t.Context(), filepath.Join(folder, "none"))}).parse([]byte(`{"prompt":"x","files":["a.pdf"]}`), 1); err == nil {
		t.Error("a folder that does not exist is no error")
	}
}

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
