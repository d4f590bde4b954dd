package chart

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/kit/statmath"
)

const hostile = `"><script>alert(1)</script><svg onload=alert(2)>` + "\x00\x1b\u202e"

// parsed reads a drawing as XML, which is stricter than HTML, and lists its elements.
func parsed(t interface{ Fatalf(string, ...any) }, drawing template.HTML) (elements []string, text string) {
	d := xml.NewDecoder(strings.NewReader(string(drawing)))
	d.Strict = true
	d.CharsetReader = nil
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, text
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, drawing)
		}
		switch e := token.(type) {
		case xml.StartElement:
			elements = append(elements, e.Name.Local)
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") {
					t.Fatalf("attribute %s", a.Name.Local)
				}
			}
		case xml.CharData:
			text += string(e)
		}
	}
}

func quantity(v float64) statmath.Quantity {
	return statmath.Quantity{Value: v, Interval: statmath.Interval{Low: v - 1, High: v + 1}, N: 3, Method: "t"}
}

// TestDrawings draws everything with hostile names and invalid numbers.
func TestDrawings(t *testing.T) {
	t.Parallel()
	name := strings.ReplaceAll(hostile, "\x00", "")
	name = strings.ReplaceAll(name, "\x1b", "")
	odd := []float64{1, math.NaN(), math.Inf(1), -2, math.Inf(-1), 1e300}
	var points []Point
	var spots []Spot
	for i, x := range odd {
		points = append(points, Point{X: float64(i), Y: quantity(x)}, Point{X: x, Y: quantity(1)})
		spots = append(spots, Spot{Name: name, Look: Series(0), X: quantity(x), Y: quantity(odd[len(odd)-1-i])})
	}
	p := Plot{Label: name, X: name, Y: name}
	drawings := map[string]template.HTML{
		"lines":     p.Lines([]Line{{Name: name, Look: Series(1), Points: points}, {Name: "empty"}}),
		"no lines":  p.Lines(nil),
		"scatter":   p.Scatter(spots, false),
		"shares":    p.Scatter(spots, true),
		"bars":      p.Bars([]string{name, "b"}, []Group{{Name: name, Values: odd}, {Values: nil}}),
		"area":      p.Area(2, odd, "s0", func(int) string { return name }),
		"histogram": p.Histogram([]float64{0.1, 1, 10}, []float64{3, 4}, []Mark{{X: 1, Name: name}}),
		"axis":      Axis(NewScale(4, odd...)),
		"track":     Track(statmath.Unknown(0, ""), Unit(), Series(2), name),
		"half":      Track(statmath.Quantity{Value: 0.5, Interval: statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}}, Unit(), Series(2), name),
	}
	for what, d := range drawings {
		elements, _ := parsed(t, d)
		if slices.Contains(elements, "script") || strings.Contains(string(d), "NaN") || strings.Contains(string(d), "Inf%") {
			t.Errorf("%s: %s", what, d)
		}
	}
	if _, text := parsed(t, drawings["scatter"]); !strings.Contains(text, `"><script>alert(1)</script>`) {
		t.Error("a name was changed")
	}
}

// TestScales checks that every value is on its scale, and that ticks are few and in order.
func TestScales(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		n := rapid.IntRange(1, 10).Draw(t, "n")
		s := NewScale(n, values...)
		for _, v := range values {
			if at := s.At(v); !(at >= 0 && at <= 1) {
				t.Fatalf("%v is at %v of %+v", v, at, s)
			}
			slack := 1e-8 * (s.Max - s.Min)
			if math.Abs(v) <= scaleEnd && (v < s.Min-slack || v > s.Max+slack) {
				t.Fatalf("%v is outside of %v to %v", v, s.Min, s.Max)
			}
		}
		if !slices.IsSorted(s.Ticks) || len(s.Ticks) > 4*n+6 {
			t.Fatalf("ticks %v", s.Ticks)
		}
	})
}

// TestZeros checks that the scale of nothing begins at zero.
func TestZeros(t *testing.T) {
	t.Parallel()
	for _, s := range []Scale{NewScale(4, 0, 0), newScale(4, 1, []float64{0})} {
		if s.Min != 0 || s.Max != 1 {
			t.Errorf("%+v", s)
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 0.25: "0.25", 1500: "1500", 15000: "15k", 1901: "1901", 20000: "20k", 2.5e6: "2.5M", 3e9: "3G", -0.1 - 0.2: "-0.3", 0.00002: "0.00002", 3e-9: "3e-09"} {
		if got := Tick(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
	if got := NewScale(4, 0, 1.74).Ticks; !slices.Equal(got, []float64{0, 0.5, 1, 1.5, 2}) {
		t.Errorf("%v", got)
	}
	if s := newLogScale(0.02, 3); s.Min != 0.01 || s.Max != 10 || s.At(0.1) < 0.333 || s.At(0.1) > 0.334 {
		t.Errorf("%+v", s)
	}
}

// TestClean checks that Clean removes whatever could fetch or run something.
func TestClean(t *testing.T) {
	t.Parallel()
	in := `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="alert(1)">
<style>.a{fill:red}@media(prefers-color-scheme:dark){.a{fill:blue}}</style>
<script>alert(2)</script><foreignObject><body onload="x"/></foreignObject>
<image href="http://evil.example/x.png"/><a href="javascript:alert(3)"><text>in a link</text></a>
<use href="#ok"/><use href="http://evil.example/#x"/><rect class="a  b" style="fill:url(http://evil.example)" fill="url(#g)" stroke="url(http://evil.example)"/>
<text x="1" onclick="x()">&lt;b&gt; words</text><animate attributeName="href" to="javascript:x"/></svg>`
	out, style, err := Clean(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"script", "evil", "onload", "onclick", "foreignObject", "image", "animate", "in a link", "style"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("%s is still there: %s", bad, out)
		}
	}
	for _, good := range []string{`viewBox="0 0 9 9"`, `href="#ok"`, `fill="url(#g)"`, "&lt;b&gt; words", `class="pic-a pic-b"`} {
		if !strings.Contains(string(out), good) {
			t.Errorf("%s is gone: %s", good, out)
		}
	}
	if style != ".pic-a{fill:red}@media(prefers-color-scheme:dark){.pic-a{fill:blue}}" {
		t.Errorf("style %q", style)
	}
	for _, sheet := range []string{"@import 'x'", "a{b:url(x)}", `a{b:\75rl(x)}`, "a{}&lt;/style>",
		"} body{display:none} a{", "a{b:(}) } body{c:d} a{}", "a{b:url(#{)} } body{c:d}", "a{b:'}\n} body{c:d} a{e:'}", "a{", "a{b:\"}", "/* a{}", "a[}]{}]", "/*/ } body{c:d} /*/{*/", " ",
		".a{:root:has(&){b:c}}", ".a{b:c;& + p{d:e}}", "@keyframes a{from{b:c}}", "@layer x{a{}}", "@charset 'x';a{}", "@scope(a){b{}}", "a{};", ",a{}", "@media{@page{a:b}}", "@media all{.a{body &{b:c}}}"} {
		if _, style, _ := Clean("<svg><style>" + sheet + "</style></svg>"); style != "" {
			t.Errorf("%s was let through", style)
		}
	}
	for _, sheet := range []string{"a{b:'}'}", `a{b:"{"}`, "a{b:url(#c-1);d:url(#E)}", "/* } */ a[b='c']{d:calc((1px + 2px)/3)}", "/**/a{}"} {
		if _, style, _ := Clean("<svg><style>" + sheet + "</style></svg>"); style == "" {
			t.Errorf("%s is left out", sheet)
		}
	}
	for sheet, want := range map[string]string{
		"body{a:b}":                        "svg:not(.chart) body{a:b}",
		".a .b>.c:hover , text.a{b:c}":     ".pic-a .pic-b>.pic-c:hover,svg:not(.chart) text.pic-a{b:c}",
		".a + p,.a~p{b:c}":                 "svg:not(.chart) .pic-a + p,svg:not(.chart) .pic-a~p{b:c}",
		":is(.a,body),:not(.a){b:c}":       "svg:not(.chart) :is(.pic-a,body),svg:not(.chart) :not(.pic-a){b:c}",
		"body:has(.a){b:c}":                "svg:not(.chart) body:has(.pic-a){b:c}",
		"@media print{.a{b:c}}":            "@media print{.pic-a{b:c}}",
		".a/* } */{b:.5}":                  ".pic-a{b:.5}",
		"@supports(a:b){.a{b:c}}.b{d:'}'}": "@supports(a:b){.pic-a{b:c}}.pic-b{d:'}'}",
	} {
		if _, got, _ := Clean("<svg><style>" + strings.ReplaceAll(sheet, ">", "&gt;") + "</style></svg>"); string(got) != want {
			t.Errorf("%s is %s, want %s", sheet, got, want)
		}
	}
	for _, none := range []string{"", "words", "<p>x</p>", "<svg>"} {
		if _, _, err := Clean(none); err == nil {
			t.Errorf("%q is a picture", none)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add(`<svg><g><text>x</text></g></svg>`)
	f.Add(`<svg><style>a{}</style><script>x</script></svg>`)
	f.Fuzz(func(t *testing.T, in string) {
		out, style, err := Clean(in)
		if err != nil {
			return
		}
		elements, _ := parsed(t, out)
		for _, e := range elements {
			if !slices.Contains(harmless(), e) {
				t.Fatalf("%s in %s", e, out)
			}
		}
		if strings.Contains(string(style), "<") {
			t.Fatal(style)
		}
	})
}
