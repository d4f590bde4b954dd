package text

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
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
	for _, name := range []string{"secrets.yaml", "other.txt", "run.parley", "run.parley-wal", "run.parley-labels", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		filepath.Join(dir, "secrets.yml"):        "; did you mean " + filepath.Join(dir, "secrets.yaml") + "?",
		filepath.Join(dir, "nothing-like-it"):    "",
		filepath.Join(dir, "run.parley-wall"):    "",
		filepath.Join(dir, "ran.parley"):         "; did you mean " + filepath.Join(dir, "run.parley") + "?",
		filepath.Join(dir, "hidden"):             "",
		filepath.Join(dir, "gone", "secrets.ym"): "",
		dir + string(filepath.Separator):         "",
	} {
		if got := SuggestPath(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func FuzzNearest(f *testing.F) {
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

func TestRanges(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 5, 6, 7, 9, 11, 12, 13}
	for limit, want := range map[int]string{0: "1, 2, 5 to 7, 9, 11 to 13", 3: "1, 2, 5 to 7, and 4 more", 5: "1, 2, 5 to 7, 9, 11 to 13"} {
		if got := Ranges(all, limit); got != want {
			t.Errorf("%d: %s, want %s", limit, got, want)
		}
	}
	if got := Ranges(nil, 1); got != "" {
		t.Error(got)
	}
}

func TestGroupDigits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 1234567: "1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := GroupDigits(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestFirstJSONDifference(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for _, c := range []struct {
		a, b any
		want string // key, a and b; empty: none
	}{
		{object{"x": 1}, object{"x": 1}, ""},
		{object{"x": 1}, object{"x": 2}, "k.x 1 2"},
		{object{"x": object{"y": 1, "z": 1}}, object{"x": object{"y": 1, "z": nil}}, "k.x.z 1 not set"},
		{object{"x": 1}, object{"x": 1, "a": "b"}, `k.a not set "b"`},
		{object{"x": []int{1}}, object{"x": []int{1, 2}}, "k.x [1] [1,2]"},
		{nil, object{"x": 1}, `k not set {"x":1}`},
		{json.RawMessage("{"), 1, "k not set 1"},
		{math.NaN(), 1, "k not set 1"},
		{strings.Repeat("x", 99), "", `k "` + strings.Repeat("x", 79) + `… ""`},
	} {
		got := ""
		if d := FirstJSONDifference("k", c.a, c.b); d != nil {
			got = d.Key + " " + BriefJSON(d.A) + " " + BriefJSON(d.B)
		}
		if got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x    float64
		n    int
		want string
	}{{0.725, 2, "0.73"}, {0.175, 2, "0.18"}, {0.025, 2, "0.03"}, {-0.025, 2, "-0.03"}, {0.7249, 2, "0.72"}, {87.0 / 120, 2, "0.73"}, {2, 1, "2.0"}, {1.5e12, 2, "1.5e+12"}} {
		if got := Decimals(c.x, c.n); got != c.want {
			t.Errorf("%v: %s, want %s", c.x, got, c.want)
		}
	}
}
