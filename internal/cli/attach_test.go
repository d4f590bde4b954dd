package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/llm/llmtest"
)

// TestAttach: files are sent with a prompt, and with the lines of a file; what a model cannot take is an error before
// anything is sent.
func TestAttach(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pdf, wav, text := file("a.pdf", llmtest.PDF), file("b.wav", llmtest.WAV), file("c.pdf", "text")
	var s State
	got := parley(t, s, "ask", "--attach", pdf, "--attach", wav, "--attach", pdf, "What is this?").want(t, exit.OK)
	if !strings.HasPrefix(got.stdout, "I was given 2 documents and 1 recording. ") {
		t.Errorf("stdout %q", got.stdout)
	}
	parley(t, s, "ask", "--attach", text, "x").want(t, exit.Misuse).wantErr(t, "c.pdf: its content is no PDF, no picture")
	parley(t, s, "ask", "--attach", folder, "x").want(t, exit.Misuse)
	parley(t, s, "ask", "--attach", filepath.Join(folder, "none.pdf"), "x").want(t, exit.Misuse).wantErr(t, "none.pdf")
	lines := file("in.jsonl", `{"prompt":"x","files":["a.pdf"]}`+"\n"+`{"prompt":"x","files":["c.pdf"]}`+"\n")
	parley(t, s, "ask", "--attach", pdf, lines).want(t, exit.Misuse).wantErr(t, `a line has its own "files"`)
	got = parley(t, s, "ask", lines).want(t, exit.Failed)
	if !strings.Contains(got.stdout, "I was given 1 document and 0 recordings.") || !strings.Contains(got.stdout, "in.jsonl:2: files[0]: ") {
		t.Errorf("stdout %q", got.stdout)
	}
	parley(t, s, "ask", "--model", "lab/m", "--base-url", "http://127.0.0.1:1/v1", "--dialect", "anthropic", "--attach", wav, "x").
		want(t, exit.Failed).wantErr(t, "messages[0].content[1], audio (audio/wav, 46 bytes), cannot be sent to lab/m: the model takes no audio")
}
