package text

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	t.Parallel()
	verbs := []string{"run", "resume", "check", "show", "fork", "init"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"rum", verbs, "run"},
		{"rseume", verbs, "resume"}, // neighbours that changed places are one slip
		{"Check", verbs, "check"},
		{"chekc", verbs, "check"},
		{"bogus", verbs, ""},
		{"", verbs, ""},
		{"max-tokens", []string{"max_tokens", "model"}, "max_tokens"},
		{"temprature", []string{"top_p", "temperature"}, "temperature"},
		{"a", []string{"b", "c"}, ""},
		{"naïf", []string{"naif"}, "naif"},
		{"openai/gtp-5-mini", []string{"openai/gpt-5-mini", "openai/o3-mini"}, "openai/gpt-5-mini"},
		{"openai/some-other-model", []string{"openai/gpt-5-mini", "openai/o3-mini"}, ""},
		{strings.Repeat("run", 1000), verbs, ""},
		{"run\x00\xff", verbs, "run"},
		{"anything", nil, ""},
	} {
		if got := Nearest(c.name, c.names); got != c.want {
			t.Errorf("%.40q: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSuggestPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"secrets.yaml", "other.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		filepath.Join(dir, "secrets.yml"):        "; did you mean " + filepath.Join(dir, "secrets.yaml") + "?",
		filepath.Join(dir, "nothing-like-it"):    "",
		filepath.Join(dir, "gone", "secrets.ym"): "",
		dir + string(filepath.Separator):         "",
	} {
		if got := SuggestPath(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("run", "rum")
	f.Add("\xff\xfe", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(b) > 200 {
			return
		}
		if got := Nearest(a, []string{b}); got != "" && got != b {
			t.Errorf("%q is not one of %q", got, b)
		}
	})
}
