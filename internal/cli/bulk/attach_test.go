package bulk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/answer"
	"parley/llm"
	"parley/llm/llmtest"
)

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
