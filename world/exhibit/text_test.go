package exhibit

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostiles are texts that a reader of Markdown would do something with.
func hostiles() []string {
	return []string{
		"<script>alert(1)</script>", "<img src=http://a/b.png>", "<!-- hidden -->", "![x](http://a/b.png)", "[click](javascript:alert(1))",
		"[a]: http://a\n[a]", "<http://a>", "see http://a.b/c or WWW.a.b or ftp://x", "# A heading", "   ## Another", "Title\n===", "Title\n---", "Title\n- - -", "***", "___",
		"```\ncode\n```", "~~~html\n<b>\n~~~", "`code`", "> quoted", "&lt;b&gt; &#x202e; AT&T & co", "a\rb\r\n# c", "\x1b]0;title\a", "\u202eevil\u2066", "\u200b\U000e0041", "\xff\xfe",
		"$\\href{http://a}{x}$", "\\<b>", "- # list", "1. ![x](y)", "|a|b|\n|-|-|", "    # indented", "\t# tab", "[^1]: note", "+ + +", "~~~",
	}
}

// TestShorten: a text is cut between characters, and ends with a mark only if something is missing.
func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc …"}, {"aé", 2, "a …"}, {"\xffabc", 3, "ab …"}, {"", 0, ""}} {
		if got := Shorten(c.text, c.limit); got != c.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// TestMarkdown: nothing in the text is left that means something, and taking the escapes away
// gives the text back, with what is hidden made visible.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	live := map[string]*regexp.Regexp{
		"HTML":           regexp.MustCompile(`<`),
		"a link":         regexp.MustCompile(`(^|[^\\])(\\\\)*[\[\]]`),
		"code":           regexp.MustCompile("(^|[^\\\\])(\\\\\\\\)*`|(^|[^\\\\~])~~~"),
		"a heading":      regexp.MustCompile(`(^|[^\\&])(\\\\)*#`),
		"a rule":         regexp.MustCompile(`(?m)^[ \t]*([-=_*+~][ \t]*)+$`),
		"a quote":        regexp.MustCompile(`(?m)^[ \t]*>`),
		"an address":     regexp.MustCompile(`(?i)\w://|www\.`),
		"an entity":      regexp.MustCompile(`&#|&[a-zA-Z]+[^a-zA-Z;]*;`),
		"control":        regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f\u202a-\u202e\u2066-\u2069\u200b\ufeff]"),
		"what math does": regexp.MustCompile(`(^|[^\\])(\\\\)*\$`),
	}
	ours := strings.NewReplacer("&lt;", "", "&amp;", "")
	escaped := regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])|&lt;|&amp;`)
	for _, text := range append(hostiles(), "Plain text, with (brackets), a - b, 3 * 4 = 12, snake_case, R&D and 50%.") {
		got := Markdown(text)
		for what, re := range live {
			if m := re.FindString(ours.Replace(got)); m != "" {
				t.Errorf("%q becomes %q: %q may be %s", text, got, m, what)
			}
		}
		back := escaped.ReplaceAllStringFunc(got, func(s string) string {
			switch s {
			case "&lt;":
				return "<"
			case "&amp;":
				return "&"
			}
			return s[1:]
		})
		if want := Visible(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")); back != want {
			t.Errorf("%q becomes %q, and that %q again", text, got, back)
		}
	}
	if text := "Plain text, with (brackets), a - b, 3 * 4 = 12, snake_case, R & D: 50%."; Markdown(text) != text {
		t.Errorf("%q", Markdown(text))
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"world-state-001.md": "world-state-001.md", "../../etc/passwd": "_.._.._etc_passwd", "..": "_", "": "_", ".hidden": "_.hidden", "con": "_con", "CON.md": "_CON.md",
		"com1.txt": "_com1.txt", "com10.txt": "com10.txt", "lpt¹": "_lpt¹", "nul.tar.gz": "_nul.tar.gz", "aux ": "_aux", "a:b": "a_b", `c:\x`: "c__x", "a\x00b\nc\u202e": "a_b_c_", "end. .": "end", "é.md": "é.md", "console.md": "console.md",
	} {
		if got := FileName(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
		if got := FileName(FileName(name)); got != FileName(name) {
			t.Errorf("%q changes again, to %q", FileName(name), got)
		}
	}
	a, b := FileName(strings.Repeat("é", 200)+"1.md"), FileName(strings.Repeat("é", 200)+"2.md")
	if a == b || len(a) > maxFileName || !strings.HasSuffix(a, ".md") {
		t.Errorf("%q and %q", a, b)
	}
}

// FuzzMarkdown wants nothing live in any text.
func FuzzMarkdown(f *testing.F) {
	for _, text := range hostiles() {
		f.Add(text)
	}
	live := regexp.MustCompile("<|(^|[^\\\\])(\\\\\\\\)*[\\[\\]`$]|(?m)^[ \t]*>|\\w://")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Markdown(text); live.MatchString(got) || Visible(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
		if name := FileName(text); name == "" || len(name) > maxFileName || strings.ContainsAny(name, "/\\:\n\x00") || FileName(name) != name {
			t.Errorf("%q becomes %q", text, name)
		}
	})
}

// FuzzVisible wants nothing a terminal obeys to come through.
func FuzzVisible(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31m\u009b\u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Visible(text); !utf8.ValidString(got) || strings.ContainsFunc(got, hostile) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
