package board

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// game is a scene with an order of every kind and every result.
func game() Scene {
	fleet := func(power, at string) Unit { return Unit{Power: power, Fleet: true, At: at} }
	army := func(power, at string) Unit { return Unit{Power: power, At: at} }
	s := Scene{
		Title: "Fall 1903, movement",
		Held:  map[string]string{"PAR": "France", "BRE": "FRANCE", "GAS": "France", "LON": "England", "STP": "Russia", "NTH": "England"},
		Units: []Unit{
			army("France", "PAR"), army("Germany", "MUN"), army("Germany", "BUR"), fleet("England", "NTH"), fleet("England", "NWG"),
			army("England", "YOR"), fleet("Russia", "STP/SC"), army("Italy", "VEN"), {Power: "Austria", At: "VEN", Dislodged: true},
		},
	}
	s.Orders = []Order{
		{Unit: army("France", "PAR"), Kind: Move, To: "BUR", Results: []string{"bounce"}},
		{Unit: army("Germany", "BUR"), Kind: Move, To: "PAR", Results: []string{"bounce", "dislodged"}},
		{Unit: army("Germany", "MUN"), Kind: Support, From: "BUR", To: "PAR", Results: []string{"cut"}},
		{Unit: army("Italy", "VEN"), Kind: Support, From: "TYR", Results: []string{"void"}},
		{Unit: army("England", "YOR"), Kind: Move, To: "NWY", Results: []string{"success"}},
		{Unit: fleet("England", "NTH"), Kind: Convoy, From: "YOR", To: "NWY", Results: []string{"success"}},
		{Unit: fleet("England", "NWG"), Kind: Convoy, From: "CLY", To: "NWY", Results: []string{"void"}},
		{Unit: fleet("Russia", "STP/SC"), Kind: Hold},
		{Unit: Unit{Power: "Austria", At: "VEN", Dislodged: true}, Kind: Retreat, To: "TRI", Results: []string{"disband"}},
		{Unit: fleet("France", "BRE"), Kind: Build, Results: []string{"success"}},
		{Unit: army("Germany", "MUN"), Kind: Disband, Results: []string{"success"}},
	}
	return s
}

func draw(t *testing.T, s Scene) string {
	t.Helper()
	var b bytes.Buffer
	if err := Draw(&b, s); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	return b.String()
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDraw looks for the sign of every order, in the colour of its result.
func TestDraw(t *testing.T) {
	t.Parallel()
	text := draw(t, game())
	for _, want := range []string{
		`pb-order pb-bounce" d="M[^"]+zM[^"]+"><title>A PAR - BUR: bounce<`, // a head, then a bar
		`pb-order pb-dislodged" d="M[^"]+"><title>A BUR - PAR: bounce, dislodged<`,
		`pb-order pb-failed pb-aid" d="M[^"]+"><title>A MUN S BUR - PAR: cut<`,
		`pb-order pb-failed pb-aid" d="M[^"]+"><title>A VEN S TYR: void<`,
		`#pb-cross" class="pb-order pb-failed"`,
		`pb-order pb-success" d="M[^"]+z"><title>A YOR - NWY: success<`,
		`pb-order pb-success pb-aid" d="M[^"]+a[^"]+"><title>F NTH C YOR - NWY: success<`, // a ring
		`pb-order pb-failed pb-aid" d="M[^"]+c[^"]+"><title>F NWG C CLY - NWY: void<`,     // a curve
		`pb-order pb-pending" d="M[^"]+a[^"]+"><title>F STP/SC H<`,
		`pb-order pb-dislodged pb-retreat" d="M[^"]+"><title>A VEN R TRI: disband<`,
		`#pb-built" class="pb-order pb-success"[^>]*><title>F BRE B: success<`,
		`#pb-struck" class="pb-order pb-dislodged"[^>]*><title>A MUN D: success<`,
		`#pb-beaten" class="pb-order pb-dislodged"[^>]*><title>A BUR - PAR`,
		`#pb-fleet" class="pb-unit pb-france"[^>]*><title>F BRE, France<`, // built
		`#pb-army" class="pb-unit pb-austria"[^>]*><title>A VEN, Austria, dislodged<`,
		`#pb-GAS" class="pb-france-tint"><title>Gascony \(GAS\), France<`,
		`>France 2<`, `>England 1<`, `>Russia 1<`, `<g class="pb-gone">.*>Turkey 0<`,
		`<desc>Austria: A VEN. England: F NTH, F NWG, A YOR\.`,
		`class="pb-title"[^>]*>Fall 1903, movement<`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(text, `#pb-NTH" class="pb-england-tint`) {
		t.Error("a sea has an owner")
	}
	if len(text) > 150_000 {
		t.Errorf("the picture has %d bytes", len(text))
	}
}

// TestLines proves where the lines of orders go.
func TestLines(t *testing.T) {
	t.Parallel()
	s := game()
	a := standard()
	at := func(abbr string) point { p, _ := a.find(abbr); return p.unit }
	k := newSketch(a, s)
	convoyed := k.moves[[2]string{"YOR", "NWY"}]
	if !slices.Contains(convoyed, at("NTH")) {
		t.Error("the army does not pass the fleet that convoys it")
	}
	there, back := k.moves[[2]string{"PAR", "BUR"}].middle(), k.moves[[2]string{"BUR", "PAR"}].middle()
	if there.minus(back).length() < 30 {
		t.Errorf("moves against each other lie on each other, at %v and %v", there, back)
	}
	if goal := k.goal(s.Orders[2]); goal != back {
		t.Errorf("the support points to %v, the move's middle is %v", goal, back)
	}
	if goal := k.goal(s.Orders[3]); goal != at("TYR") {
		t.Errorf("the support points to %v, the unit is at %v", goal, at("TYR"))
	}
	if goal := k.goal(s.Orders[6]); goal != at("CLY").to(at("NWY"), 0.5) {
		t.Errorf("the convoy points to %v", goal)
	}
}

// TestTitles checks how titles are cut to the room there is.
func TestTitles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ title, shown, class string }{
		{"", "", "pb-title"},
		{" Spring\n1901 ", "Spring 1901", "pb-title"},
		{"Spring 1901, retreats of everybody", "Spring 1901, retreats of everybody", "pb-title pb-small"},
		{strings.Repeat("x", 43), strings.Repeat("x", 42) + "…", "pb-title pb-small"},
		{strings.Repeat("春", 22), strings.Repeat("春", 21) + "…", "pb-title pb-small"},
	} {
		text := draw(t, Scene{Title: c.title})
		if want := regexp.MustCompile(`"` + c.class + `"[^>]*>` + c.shown + `<`); !want.MatchString(text) {
			t.Errorf("%q is not shown as %s", c.title, want)
		}
	}
}

// TestOverlay proves that Map and an Overlay together are what Draw draws.
func TestOverlay(t *testing.T) {
	t.Parallel()
	shapes := Map()
	over, err := Overlay(game())
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, shapes)
	wellFormed(t, over)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(shapes, -1) {
		if ids[m[1]] {
			t.Errorf("two parts are named %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` href="#([^"]+)"`).FindAllStringSubmatch(shapes+over, -1) {
		if !ids[m[1]] {
			t.Errorf("%s is used and not there", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`class="([^"]+)"`).FindAllStringSubmatch(shapes+over, -1) {
		for class := range strings.FieldsSeq(m[1]) {
			if !strings.Contains(shapes, "."+class+"{") {
				t.Errorf("the class %s has no style", class)
			}
		}
	}
	if strings.Contains(over, " id=") {
		t.Error("an overlay has names, which would be there twice in a page of two")
	}
	_, drawn, _ := strings.Cut(draw(t, game()), "</defs>\n")
	if _, body, _ := strings.Cut(over, "</desc>\n"); body == "" || body != drawn {
		t.Error("an overlay draws something else than Draw")
	}
	if len(over) > len(shapes)/2 {
		t.Errorf("an overlay has %d bytes, the map %d", len(over), len(shapes))
	}
}

// TestSelfContained proves that a picture fetches and runs nothing.
func TestSelfContained(t *testing.T) {
	t.Parallel()
	text := strings.Replace(draw(t, game()), `xmlns="http://www.w3.org/2000/svg"`, "", 1)
	if m := regexp.MustCompile(`(?i)<script|\son\w+=|//|url\(|@import|<image|<foreignObject|href="[^#]`).FindString(text); m != "" {
		t.Errorf("the picture has %q", m)
	}
}

// TestSame proves that the same scene gives the same bytes.
func TestSame(t *testing.T) {
	t.Parallel()
	first := draw(t, game())
	for range 4 {
		if draw(t, game()) != first {
			t.Fatal("two pictures of one scene differ")
		}
	}
}

// TestRefused checks what is said about scenes that cannot be drawn.
func TestRefused(t *testing.T) {
	t.Parallel()
	ok := Unit{Power: "Italy", At: "ROM"}
	order := func(o Order) Scene { return Scene{Orders: []Order{{Unit: ok, Kind: Hold}, o}} }
	for want, s := range map[string]Scene{
		`board: held: no place "XXX" on the map: want a province`:   {Held: map[string]string{"XXX": "Italy"}},
		`board: held: STP/SC is a coast: want a province`:           {Held: map[string]string{"STP/SC": "Italy"}},
		`board: held: no power "Spain": want one of Austria, Engla`: {Held: map[string]string{"SPA": "Spain"}},
		`board: unit 2: no place "ROM/NC" on the map`:               {Units: []Unit{ok, {Power: "Italy", At: "ROM/NC"}}},
		`board: unit 1: no power ""`:                                {Units: []Unit{{At: "ROM"}}},
		`board: order 2: no kind "fly": want one of [hold move sup`: order(Order{Unit: ok, Kind: "fly"}),
		`board: order 2: move: no place ""`:                         order(Order{Unit: ok, Kind: Move}),
		`board: order 2: support: no place "ven"`:                   order(Order{Unit: ok, Kind: Support, From: "ROM", To: "ven"}),
		`board: order 2: no result "won": want one of success, bou`: order(Order{Unit: ok, Kind: Hold, Results: []string{"won"}}),
	} {
		var b bytes.Buffer
		if err := Draw(&b, s); err == nil || !strings.HasPrefix(err.Error(), want) || b.Len() > 0 {
			t.Errorf("%v; want %s", err, want)
		}
		if over, err := Overlay(s); err == nil || over != "" {
			t.Errorf("an overlay was drawn: %s", want)
		}
	}
}

// FuzzDraw feeds text from outside: a picture is well-formed or there is an error.
func FuzzDraw(f *testing.F) {
	f.Add("</text><script>alert(1)</script>", "PAR", "BUR", "move")
	f.Add("]]>\x00\xff\ufffe&<'\"", "STP/SC", "STP/NC", "support")
	f.Add(strings.Repeat("é ", 1<<12), "ROM", "ROM", "move")
	f.Add("", "MAR", "MAR", "convoy")
	f.Fuzz(func(t *testing.T, title, from, to, kind string) {
		s := Scene{Title: title, Units: []Unit{{Power: "Italy", At: from}}, Orders: []Order{
			{Unit: Unit{Power: "Italy", At: from}, Kind: Kind(kind), From: from, To: to, Results: []string{"cut"}},
		}}
		var b bytes.Buffer
		if err := Draw(&b, s); err != nil {
			return
		}
		wellFormed(t, b.String())
		if strings.Contains(b.String(), "<script") || strings.Contains(b.String(), "NaN") {
			t.Errorf("%q came through", title)
		}
	})
}

func BenchmarkOverlay(b *testing.B) {
	s := game()
	for b.Loop() {
		if _, err := Overlay(s); err != nil {
			b.Fatal(err)
		}
	}
}
