package main

import "testing"

func TestWithRows(t *testing.T) {
	t.Parallel()
	const text = "# Page\n<!-- t -->\nOld.\n\n| a | b |\n|---|---|\n| 1 | `x` |\n| 2 | `y` |\n<!-- end of t -->\nEnd\n"
	for _, c := range []struct {
		about string
		rows  []string
		want  string
	}{
		{"", nil, text},
		{"", []string{"| 3 | `y` |", "| 4 | `z` |"}, "# Page\n<!-- t -->\nOld.\n\n| a | b |\n|---|---|\n| 1 | `x` |\n| 3 | `y` |\n| 4 | `z` |\n<!-- end of t -->\nEnd\n"},
		{"New.", []string{"| 5 | `x` |"}, "# Page\n<!-- t -->\nNew.\n\n| a | b |\n|---|---|\n| 5 | `x` |\n| 2 | `y` |\n<!-- end of t -->\nEnd\n"},
	} {
		if got, err := withRows(text, "t", c.about, c.rows); err != nil || got != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
	}
	for _, bad := range []string{"", "<!-- t -->\n| a |\n|---|\n", "<!-- t -->\nno table\n<!-- end of t -->"} {
		if got, err := withRows(bad, "t", "", nil); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
