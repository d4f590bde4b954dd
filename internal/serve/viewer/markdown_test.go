package viewer

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/world/exhibit"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                               "",
		"plain":                          "<p>plain</p>",
		"one\ntwo":                       "<p>one<br>two</p>",
		"**bold** *soft* ~~gone~~ `x`":   "<p><strong>bold</strong> <em>soft</em> <del>gone</del> <code>x</code></p>",
		"# Title":                        "<h4>Title</h4>",
		"###### Title":                   "<h6>Title</h6>",
		"- a\n- b":                       "<ul><li>a</li><li>b</li></ul>",
		"3. a\n4. b":                     `<ol start="3"><li>a</li><li>b</li></ol>`,
		"1. a\n5. b\n6. c\n3. d":         `<ol><li>a</li><li>b</li><li>c</li><li>d</li></ol>`,
		"0. a\n007) b":                   `<ol start="0"><li>a</li></ol><ol start="7"><li>b</li></ol>`,
		"1. a":                           "<ol><li>a</li></ol>",
		"> a":                            "<blockquote><p>a</p></blockquote>",
		"---":                            "<hr>",
		"```go\nif a < b {\n```":         "<pre><small>go</small>\n<code>if a &lt; b {\n</code></pre>",
		"```x":                           "<pre><small>x</small>\n<code></code></pre>",
		"|a|\n|-|\n|b||\n|c\\|d|":        `<table><tr><th>a</th></tr><tr><td>b</td></tr><tr><td>c|d</td></tr></table>`,
		`\&lt; &#38;lt; &amp;lt; \\&lt;`: `<p>&amp;lt; &amp;lt; &amp;lt; \&lt;</p>`,

		"|a|b|\n|-|-|\n|1|2|":                          `<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>`,
		`\*a\* &amp; &lt;b&gt; &#x202e;`:               `<p>*a* &amp; &lt;b&gt; \u202e</p>`,
		"`&amp; \\*`":                                  `<p><code>&amp;amp; \*</code></p>`,
		"[x](https://a.example/b?c=d&e)":               `<p><a href="https://a.example/b?c=d&amp;e" rel="nofollow noreferrer noopener" target="_blank">x</a> <small>https://a.example/b?c=d&amp;e</small></p>`,
		"> [x](http://a.example\n> 'more\n> words') y": `<blockquote><p><a href="http://a.example" rel="nofollow noreferrer noopener" target="_blank">x</a> <small>http://a.example &#34;more` + "\n" + `words&#34;</small> y</p></blockquote>`,
		"<http://a.example:80>":                        "<p>&lt;http://a.example:80&gt;</p>",

		"<script>alert(1)</script>":              "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
		"<div style=\"color:red\">\n\nx</div>":   "<p>&lt;div style=&#34;color:red&#34;&gt;</p><p>x&lt;/div&gt;</p>",
		"a <img src=x onerror=alert(1)> b":       "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>",
		"![a](https://a.example/x.png)":          "<p>![a](https://a.example/x.png)</p>",
		"![a](data:image/png;base64,AA)":         "<p>![a](data:image/png;base64,AA)</p>",
		"[x](javascript:alert(1))":               "<p>x <small>javascript:alert(1)</small></p>",
		`![a](b "more")`:                         "<p>![a](b &#34;more&#34;)</p>",
		`[a](b "more") c`:                        "<p>a <small>b &#34;more&#34;</small> c</p>",
		"[x](JaVaScRiPt&colon;alert(1))":         "<p>x <small>JaVaScRiPt:alert(1)</small></p>",
		"[x](https://a.example&#46;b.example)":   `<p><a href="https://a.example.b.example" rel="nofollow noreferrer noopener" target="_blank">x</a> <small>https://a.example.b.example</small></p>`,
		"[x](data:text/html,hello)":              "<p>x <small>data:text/html,hello</small></p>",
		"[x](/run/other)":                        "<p>x <small>/run/other</small></p>",
		"[x](//a.example)":                       "<p>x <small>//a.example</small></p>",
		"[x](?steer=stop)":                       "<p>x <small>?steer=stop</small></p>",
		"[x](file:///etc/passwd)":                "<p>x <small>file:///etc/passwd</small></p>",
		"[x](https:javascript)":                  "<p>x <small>https:javascript</small></p>",
		"[x](https://good.example@a.example)":    "<p>x <small>https://good.example@a.example</small></p>",
		`[x](https://good.example\@a.example)`:   "<p>x <small>https://good.example@a.example</small></p>",
		"[x](<https://a.example/\" style=\"x>)":  `<p><a href="https://a.example/%22%20style=%22x" rel="nofollow noreferrer noopener" target="_blank">x</a> <small>https://a.example/&#34; style=&#34;x</small></p>`,
		"[<http://a.example>](http://b.example)": `<p><a href="http://b.example" rel="nofollow noreferrer noopener" target="_blank">&lt;http://a.example&gt;</a> <small>http://b.example</small></p>`,
		"[x](https://bücher.example)":            "<p>x <small>https://bücher.example</small></p>",
		"<javascript:alert(1)>":                  "<p>&lt;javascript:alert(1)&gt;</p>",
		"<me@a.example>":                         "<p>&lt;me@a.example&gt;</p>",
		"<thinking:hello>":                       "<p>&lt;thinking:hello&gt;</p>",
		"[x][y]\n\n[y]: https://a.example":       "<p>[x][y]</p><p>[y]: https://a.example</p>",
		"# a {#id .class style=x}":               "<h4>a {#id .class style=x}</h4>",
		"a\x1b[31m\u202e\xff\x00":                `<p>a\u001b[31m\u202e\xff\u0000</p>`,
	} {
		html, why := newFormatter().Format(source)
		if got := strings.TrimSpace(betweenRE.ReplaceAllString(string(html), "$1$2")); got != want || why != "" {
			t.Errorf("%q:\n got %s (%s)\nwant %s", source, got, why, want)
		}
	}
	for _, source := range []string{"|a|\n|-|\n|b|SECRET|", "|a|\n|-|\n|b|42|"} {
		if got, why := newFormatter().Format(source); got != "" || why != "not formatted: that would hide some of its words" {
			t.Errorf("%q: %s (%s)", source, got, why)
		}
	}
	var none *formatter
	if got, why := none.Format("**a**"); got != "" || why != "" {
		t.Errorf("no formatter: %s %s", got, why)
	}
}

// betweenRE finds the ends of lines between elements.
var betweenRE = regexp.MustCompile(`(<br>)\n|\n+(<(?:/?tr|/?table|/?li|/?[ou]l|/?blockquote|p|hr|t[hd])\b)`)

// repeated returns as much of a text again and again as can be formatted.
func repeated(text string) string { return strings.Repeat(text, maxText/len(text)) }

// attacks are texts that take much time, memory or depth in parsers that do not limit them.
func attacks() []string {
	half := maxText / 2
	table := "|" + strings.Repeat("a|", 90) + "\n|" + strings.Repeat("-|", 90) + "\n" + strings.Repeat("|\n", 90) + "\n"
	return []string{
		repeated(">"), strings.Repeat(">", half) + strings.Repeat("\na", half/2), repeated("> - "), repeated("- "), repeated("* - + "), repeated("1. "),
		repeated("["), strings.Repeat("[", half) + strings.Repeat("]", half), repeated("[a]("), repeated("[a](<b"), repeated("![[]()"), "# " + strings.Repeat("[a](", maxText/8),
		repeated("*a_ "), repeated("*a **a "), repeated("a***b_c__~~d~"), strings.Repeat("*", half) + "a" + strings.Repeat("*", half-1), repeated("`a``"),
		repeated(table), strings.Repeat("|a", maxText/8) + "|\n" + strings.Repeat("|-", maxText/8) + "|\n" + strings.Repeat("|\n", maxText/5), repeated("|`\\|"), strings.Repeat("a\n", half/4) + "|-|\n" + strings.Repeat("=\n", half/4),
		repeated("<http://a"), repeated("<a b=\""), repeated("<!--"), repeated("&#x0;&"), repeated("\\"), repeated("[a](http://b.c)"),
	}
}

// TestLimits formats attacks, or refuses them. Without limits this takes minutes, and gigabytes.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, source := range attacks() {
		formatted(t, source)
		formatted(t, source[:len(source)/100])
	}
	f := newFormatter()
	if got, why := f.Format(strings.Repeat("a", maxText+1)); got != "" || why != "not formatted: it has more than 64 KB" {
		t.Errorf("a long text: %.20q, %s", got, why)
	}
	for range maxPage / maxText {
		if got, why := f.Format(repeated("a")); got == "" || why != "" {
			t.Errorf("a text of a page: %.20q, %s", got, why)
		}
	}
	if got, why := f.Format("a"); got != "" || why != "not formatted: the texts before it on this page have 512 KB" {
		t.Errorf("a text too many: %q, %s", got, why)
	}
}

// TestTooComplex checks which texts are not formatted for their marks.
func TestTooComplex(t *testing.T) {
	t.Parallel()
	table := func(rows int) string { return "|a|b|c|\n|-|-|-|\n" + strings.Repeat("|1|2|3|\n", rows) }
	for source, want := range map[string]bool{
		strings.Repeat("**a** `b`\n\n", 5000): false, strings.Repeat("**a** `b`\n", 1000): true,
		strings.Repeat("- **a** `b`\n", 1000): false, strings.Repeat("    - **a** `b`\n", 1000): true, strings.Repeat("- \n**a** `b`", 1000): true,
		strings.Repeat("> ", 16) + "a": false, strings.Repeat("> ", 17) + "a": true, "a\n" + strings.Repeat("1. ", 17): true,
		strings.Repeat("-", 100): false, table(300): false, table(6000): true,
	} {
		if got := tooComplex(source); got != want {
			t.Errorf("%.40q of %d bytes: %v", source, len(source), got)
		}
	}
}

// allowedRE finds the elements that a text may have, with their attributes.
var allowedRE = regexp.MustCompile(`<(/?)(?:(p|h[4-6]|blockquote|ul|li|em|strong|del|code|table|tr|td|br|hr|ol|th|pre|a|small)|ol start="\d+"|a href="https?://[^"<>\s]*" rel="nofollow noreferrer noopener" target="_blank")>`)

// formatted formats a text and checks that the HTML has only what we allow, that its elements are closed in order, and that a
// reader sees every word. A text that is not formatted says why.
func formatted(t *testing.T, source string) {
	t.Helper()
	html, why := newFormatter().Format(source)
	out := string(html)
	if (out == "") != (why != "" || strings.TrimSpace(source) == "") || len(out) > 20*maxText {
		t.Fatalf("%.200q: %d bytes of HTML, %s", source, len(out), why)
	}
	var open []string
	for _, m := range allowedRE.FindAllStringSubmatch(out, -1) {
		name := strings.Trim(strings.Fields(m[0])[0], "</>")
		switch {
		case name == "br" || name == "hr":
		case m[1] == "":
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			t.Fatalf("%.200q: </%s> after %v", source, name, open)
		default:
			open = open[:len(open)-1]
		}
	}
	if rest := allowedRE.ReplaceAllString(out, ""); len(open) > 0 || strings.ContainsAny(rest, `<>"'`) || !utf8.ValidString(rest) {
		t.Fatalf("%.200q: open: %v, left: %.500q", source, open, rest)
	}
	if out != "" && !hasWords(out, exhibit.Visible(source)) {
		t.Fatalf("%.200q: words are missing in %.500q", source, out)
	}
}

func TestHasWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		formatted, source string
		want              bool
	}{
		{"<p>one <em>two</em></p>", "one *two*", true},
		{"<p>a<strong>b</strong>c &amp;</p>", "a**b**c &amp;", true},
		{"<p>two one</p>", "one two", false},
		{`<p title="one">two</p>`, "one two", false},
		{"<p>Zug</p>", "Zug Zürich", false},
		{"<p>one</p>", "one one", false},
		{"<ol><li>one</li></ol>", "> 7. one", true},
		{"<table><tr><td>one</td></tr></table>", "|one|42|", false},
	} {
		if got := hasWords(c.formatted, c.source); got != c.want {
			t.Errorf("%q of %q: %v", c.formatted, c.source, got)
		}
	}
}

// hiding are texts with words in places that other programs do not show.
func hiding() []string {
	return []string{
		"``` one two", "~~~one two\nthree\n~~~\nfour", "```one", "- ```one two\n  three", "> ~~~ one\n> two", "   ```` one\n   two",
		"|one|\n|-|\n|two|three|", "zero\none|two\n-|-\nthree|four|five\n\nsix", "|one|\n|:-:|\n|`two\\|three`|four\\|",
		`[one](two "three") four`, `![one](two 'three') four`, "[one](https://two.example/three?four (five six)) seven", "[one](<two three>\n\"four\nfive\")",
		"![one ![two](three \"four\")](five \"six\")", "[**one** `two`](three)", "[one](two 'three') [four][five] [six]\n\n[five]: seven \"eight\"\n[six]: <nine>",
		"[one]: two \"three\"", "[^one]: two", "<one:two> <http://three.example/four> <five@six.example>", "<one two=three>four</one> <!-- five -->", "<one:two%three",
		"one\ntwo\n|-|\n---\nthree", "one\ntwo\n|-|\nthree\n- \nfour", "one\n|-|\n\v|two",
		"# one {#two .three}", "## one ## two ##", "one {.two}\n===", "a. one\nb) two", "- [x] one\n- [ ] two", "\\one \\<two> \\&three;", "    one\n\ttwo", "one  \ntwo\\\nthree",
	}
}

func TestNothingHidden(t *testing.T) {
	t.Parallel()
	for _, source := range hiding() {
		formatted(t, source)
	}
}

func FuzzFormat(f *testing.F) {
	for _, seed := range []string{"**a** [b](https://c.example)", "|a|\n|-|\n|b|", "> - 1. `x`", "<b>\n```\n", "~~a~~ ![b](c) <d@e.f>", "a\n===\n&amp;\\*"} {
		f.Add(seed)
	}
	for _, seed := range hiding() {
		f.Add(seed)
	}
	f.Fuzz(formatted)
}
