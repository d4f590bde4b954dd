package viewer

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
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
		"3. a\n4. b":                     `<ol><li value="3">a</li><li>b</li></ol>`,
		"1. a\n5. b\n6. c\n3. d":         `<ol><li>a</li><li value="5">b</li><li>c</li><li value="3">d</li></ol>`,
		"0. a\n007) b":                   `<ol><li value="0">a</li></ol><ol><li value="7">007) b</li></ol>`,
		"1. a":                           "<ol><li>a</li></ol>",
		"> a":                            "<blockquote><p>a</p></blockquote>",
		"---":                            "<hr>",
		"```go\nif a < b {\n```":         "<pre tabindex=\"0\"><small>go</small>\n<code>if a &lt; b {\n</code></pre>",
		"```x":                           "<pre tabindex=\"0\"><small>x</small>\n<code></code></pre>",
		"|a|\n|-|\n|b|SECRET|":           "<p>|a|<br>|-|<br>|b|SECRET|</p>",
		"|a|\n|-|\n|b||\n|c\\|d|":        `<table><tr><th scope="col">a</th></tr><tr><td>b</td></tr><tr><td>c|d</td></tr></table>`,
		`\&lt; &#38;lt; &amp;lt; \\&lt;`: `<p>&amp;lt; &amp;lt; &amp;lt; \&lt;</p>`,

		"|a|b|\n|-|-|\n|1|2|":                          `<table><tr><th scope="col">a</th><th scope="col">b</th></tr><tr><td>1</td><td>2</td></tr></table>`,
		`\*a\* &amp; &lt;b&gt; &#x202e;`:               `<p>*a* &amp; &lt;b&gt; \u202e</p>`,
		"`&amp; \\*`":                                  `<p><code>&amp;amp; \*</code></p>`,
		"[x](https://a.example/b?c=d&e)":               `<p><a href="https://a.example/b?c=d&amp;e" rel="noopener noreferrer nofollow">x</a> <small class="host">https://a.example/b?c=d&amp;e</small></p>`,
		"> [x](http://a.example\n> 'more\n> words') y": `<blockquote><p><a href="http://a.example" rel="noopener noreferrer nofollow">x</a> <small class="host">http://a.example` + "\n&#39;more\nwords&#39;" + `</small> y</p></blockquote>`,
		"<http://a.example:80>":                        `<p><a href="http://a.example:80" rel="noopener noreferrer nofollow">http://a.example:80</a> <small class="host">a.example:80</small></p>`,

		"<script>alert(1)</script>":              "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
		"<div style=\"color:red\">\n\nx</div>":   "<p>&lt;div style=&#34;color:red&#34;&gt;</p><p>x&lt;/div&gt;</p>",
		"a <img src=x onerror=alert(1)> b":       "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>",
		"![a](https://a.example/x.png)":          "<p>![a](https://a.example/x.png)</p>",
		"![a](data:image/png;base64,AA)":         "<p>![a](data:image/png;base64,AA)</p>",
		"[x](javascript:alert(1))":               "<p>[x](javascript:alert(1))</p>",
		`![a](b "more")`:                         "<p>![a](b &#34;more&#34;)</p>",
		`[a](b "more") c`:                        "<p>[a](b &#34;more&#34;) c</p>",
		"[x](JaVaScRiPt&colon;alert(1))":         "<p>[x](JaVaScRiPt&amp;colon;alert(1))</p>",
		"[x](https://a.example&#46;b.example)":   "<p>[x](https://a.example&amp;#46;b.example)</p>",
		"[x](data:text/html,hello)":              "<p>[x](data:text/html,hello)</p>",
		"[x](/run/other)":                        "<p>[x](/run/other)</p>",
		"[x](//a.example)":                       "<p>[x](//a.example)</p>",
		"[x](?steer=stop)":                       "<p>[x](?steer=stop)</p>",
		"[x](file:///etc/passwd)":                "<p>[x](file:///etc/passwd)</p>",
		"[x](https:javascript)":                  "<p>[x](https:javascript)</p>",
		"[x](https://good.example@a.example)":    "<p>[x](https://good.example@a.example)</p>",
		`[x](https://good.example\@a.example)`:   `<p>[x](https://good.example\@a.example)</p>`,
		"[x](<https://a.example/\" style=\"x>)":  `<p><a href="https://a.example/%22%20style=%22x" rel="noopener noreferrer nofollow">x</a> <small class="host">&lt;https://a.example/&#34; style=&#34;x&gt;</small></p>`,
		"[<http://a.example>](http://b.example)": `<p><a href="http://b.example" rel="noopener noreferrer nofollow">&lt;http://a.example&gt;</a> <small class="host">http://b.example</small></p>`,
		"[x](https://bücher.example)":            "<p>[x](https://bücher.example)</p>",
		"<javascript:alert(1)>":                  "<p>&lt;javascript:alert(1)&gt;</p>",
		"<me@a.example>":                         "<p>&lt;me@a.example&gt;</p>",
		"<thinking:hello>":                       "<p>&lt;thinking:hello&gt;</p>",
		"[x][y]\n\n[y]: https://a.example":       "<p>[x][y]</p><p>[y]: https://a.example</p>",
		"# a {#id .class style=x}":               "<h4>a {#id .class style=x}</h4>",
		"a\x1b[31m\u202e\xff\x00":                `<p>a\u001b[31m\u202e\xff\u0000</p>`,
	} {
		if got, why := newFormatter().Format(source); string(got) != want || why != "" {
			t.Errorf("%q:\n got %s (%s)\nwant %s", source, got, why, want)
		}
	}
	var none *formatter
	if got, why := none.Format("**a**"); got != "" || why != "" {
		t.Errorf("no formatter: %s %s", got, why)
	}
}

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

// TestLimits formats attacks. Without limits this takes minutes, and gigabytes.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, source := range attacks() {
		if testing.Short() {
			source = source[:len(source)/8]
		}
		got, why := newFormatter().Format(source)
		if why != "" {
			t.Errorf("%.20q: %s", source, why)
		}
		sound(t, source, string(got))
		complete(t, source, string(got))
		if len(got) > 20*maxText {
			t.Errorf("%.20q: %d bytes of HTML", source, len(got))
		}
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

// tagRE finds the elements that a text may have, with their attributes.
var tagRE = regexp.MustCompile(`<(/?)(?:(p|h[4-6]|blockquote|ul|li|em|strong|del|code|table|tr|td|br|hr|ol|th|pre|a|small)|li value="\d+"|th scope="col"|pre tabindex="0"|small class="host"|a href="https?://[^"<>\s]*" rel="noopener noreferrer nofollow")>`)

// sound checks that HTML has only what we allow, that its elements are closed in order, and that they are not too deep.
func sound(t *testing.T, source, out string) {
	t.Helper()
	var open []string
	for _, m := range tagRE.FindAllStringSubmatch(out, -1) {
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
		if len(open) > 4*maxNesting {
			t.Fatalf("%.200q: %d elements in each other", source, len(open))
		}
	}
	if rest := tagRE.ReplaceAllString(out, ""); len(open) > 0 || strings.ContainsAny(rest, `<>"'`) || !utf8.ValidString(rest) {
		t.Fatalf("%.200q: open: %v, left: %.500q", source, open, rest)
	}
}

// wordRE finds words of letters, and entityRE what stands for a character.
var (
	wordRE   = regexp.MustCompile(`[A-Za-z]+`)
	entityRE = regexp.MustCompile(`&#?[0-9A-Za-z]+;`)
)

// complete checks that a reader of the HTML sees every word of the source, in the same order.
func complete(t *testing.T, source, out string) {
	t.Helper()
	left := html.UnescapeString(tagRE.ReplaceAllString(out, ""))
	for _, word := range wordRE.FindAllString(entityRE.ReplaceAllString(source, " "), -1) {
		_, after, found := strings.Cut(left, word)
		if !found {
			t.Fatalf("%.200q: %q is not in what is left: %.200q", source, word, left)
		}
		left = after
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
		out, _ := newFormatter().Format(source)
		sound(t, source, string(out))
		complete(t, source, string(out))
	}
}

func FuzzFormat(f *testing.F) {
	for _, seed := range []string{"**a** [b](https://c.example)", "|a|\n|-|\n|b|", "> - 1. `x`", "<b>\n```\n", "~~a~~ ![b](c) <d@e.f>", "a\n===\n&amp;\\*"} {
		f.Add(seed)
	}
	for _, seed := range hiding() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		out, _ := newFormatter().Format(source)
		sound(t, source, string(out))
		complete(t, source, string(out))
	})
}
