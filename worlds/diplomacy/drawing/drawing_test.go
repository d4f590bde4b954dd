package drawing

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/worlds/diplomacy/rules"
)

var drawer = sync.OnceValue(func() *Drawer { return New(rules.NewBoard()) })

// unit parses a unit, such as "France A PAR", with a star if it is dislodged.
func unit(text string) Unit {
	power, text, _ := strings.Cut(text, " ")
	text, dislodged := strings.CutPrefix(text, "*")
	w, _ := rules.ParsePower(power)
	t, at, err := rules.ParseUnit(drawer().board, text)
	if err != nil {
		panic(err)
	}
	return Unit{Unit: rules.Unit{Power: w, Type: t, Location: at}, Dislodged: dislodged}
}

// ordered parses an order in the same way.
func ordered(text string, results ...string) Order {
	power, text, _ := strings.Cut(text, " ")
	text, dislodged := strings.CutPrefix(text, "*")
	w, _ := rules.ParsePower(power)
	o, err := rules.Parse(drawer().board, text)
	if err != nil {
		panic(err)
	}
	return Order{Order: o, Power: w, Dislodged: dislodged, Results: results}
}

// at returns where a unit is drawn.
func at(code string) point {
	l, _ := drawer().board.ByCode(code)
	return drawer().units[l]
}

func move(from, to string) route {
	a, _ := drawer().board.ByCode(from)
	b, _ := drawer().board.ByCode(to)
	return drawer().route(a, b)
}

// game is a scene with an order of every kind and every result.
func game() Scene {
	s := Scene{Title: "Fall 1903, movement", Owners: map[rules.Province]rules.Power{}}
	for code, w := range map[string]rules.Power{"PAR": rules.France, "BRE": rules.France, "GAS": rules.France, "LON": rules.England, "STP": rules.Russia, "NTH": rules.England} {
		p, _ := drawer().board.Find(code)
		s.Owners[p] = w
	}
	for _, text := range []string{
		"France A PAR", "Germany A MUN", "Germany A BUR", "England F NTH", "England F NWG", "England A YOR", "Russia F STP/SC", "Italy A VEN", "Austria *A VEN",
	} {
		s.Units = append(s.Units, unit(text))
	}
	s.Orders = []Order{
		ordered("France A PAR - BUR", "bounce"), ordered("Germany A BUR - PAR", "bounce", "dislodged"), ordered("Germany A MUN S A BUR - PAR", "cut"),
		ordered("Italy A VEN S A TYR", "void"), ordered("England A YOR - NWY", "success"), ordered("England F NTH C A YOR - NWY", "success"),
		ordered("England F NWG C A CLY - NWY", "void"), ordered("Russia F STP/SC H"), ordered("Austria *A VEN R TRI", "disband"),
		ordered("France F BRE B", "success"), ordered("Germany A MUN D", "success"), ordered("Italy WAIVE", "success"),
	}
	return s
}

func draw(t *testing.T, s Scene) string {
	t.Helper()
	text := drawer().Draw(s)
	wellFormed(t, text)
	return text
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

// TestDraw checks that the picture has the sign of every order, in the colour of its result.
func TestDraw(t *testing.T) {
	t.Parallel()
	text := draw(t, game())
	for _, want := range []string{
		`pb-order pb-bounce" d="M[^"]+zM[^"]+"><title>A PAR - BUR: bounce<`, // an arrowhead, then a bar
		`pb-order pb-dislodged" d="M[^"]+"><title>A BUR - PAR: bounce, dislodged<`,
		`pb-order pb-failed pb-aid" d="M[^"]+"><title>A MUN S A BUR - PAR: cut<`,
		`pb-order pb-failed pb-aid" d="M[^"]+"><title>A VEN S A TYR: void<`,
		`#pb-cross" class="pb-order pb-failed"`,
		`pb-order pb-success" d="M[^"]+z"><title>A YOR - NWY: success<`,
		`pb-order pb-success pb-aid" d="M[^"]+a[^"]+"><title>F NTH C A YOR - NWY: success<`, // a ring
		`pb-order pb-failed pb-aid" d="M[^"]+c[^"]+"><title>F NWG C A CLY - NWY: void<`,     // a curve
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

// TestLines checks where the lines of orders go.
func TestLines(t *testing.T) {
	t.Parallel()
	s := game()
	k := drawer().newSketch(s)
	convoyed := k.moves[move("YOR", "NWY")]
	if !slices.Contains(convoyed, at("NTH")) {
		t.Error("the army does not pass the fleet that convoys it")
	}
	there, back := k.moves[move("PAR", "BUR")].middle(), k.moves[move("BUR", "PAR")].middle()
	if there.minus(back).length() < 30 {
		t.Errorf("the lines of opposite moves overlap, at %v and %v", there, back)
	}
	if goal := k.pointedAt(s.Orders[2]); goal != back {
		t.Errorf("the support points to %v, the move's middle is %v", goal, back)
	}
	if goal := k.pointedAt(s.Orders[3]); goal != at("TYR") {
		t.Errorf("the support points to %v, the unit is at %v", goal, at("TYR"))
	}
	if goal := k.pointedAt(s.Orders[6]); goal != at("CLY").to(at("NWY"), 0.5) {
		t.Errorf("the convoy points to %v", goal)
	}
}

// TestTitles checks that long titles are cut.
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

// TestOverlay checks that Base and an Overlay together draw the same as Draw.
func TestOverlay(t *testing.T) {
	t.Parallel()
	shapes, over := drawer().Base(), drawer().Overlay(game())
	wellFormed(t, shapes)
	wellFormed(t, over)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(shapes, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` href="#([^"]+)"`).FindAllStringSubmatch(shapes+over, -1) {
		if !ids[m[1]] {
			t.Errorf("%s is used and is not defined", m[1])
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
		t.Error("an overlay has ids, which would be twice in a page with two overlays")
	}
	_, drawn, _ := strings.Cut(draw(t, game()), "</defs>\n")
	if _, body, _ := strings.Cut(over, "</desc>\n"); body == "" || body != drawn {
		t.Error("an overlay differs from the picture of Draw")
	}
	if len(over) > len(shapes)/2 {
		t.Errorf("an overlay has %d bytes, the map %d", len(over), len(shapes))
	}
}

// TestSelfContained checks that a picture has no scripts and no references to other files.
func TestSelfContained(t *testing.T) {
	t.Parallel()
	text := strings.Replace(draw(t, game()), `xmlns="http://www.w3.org/2000/svg"`, "", 1)
	if m := regexp.MustCompile(`(?i)<script|\son\w+=|//|url\(|@import|<image|<foreignObject|href="[^#]`).FindString(text); m != "" {
		t.Errorf("the picture has %q", m)
	}
}

// TestSame checks that the same scene gives the same bytes.
func TestSame(t *testing.T) {
	t.Parallel()
	first := draw(t, game())
	for range 4 {
		if draw(t, game()) != first {
			t.Fatal("two pictures of one scene differ")
		}
	}
}

// FuzzDraw checks that any order that can be read, with any title and result, gives a well-formed picture.
func FuzzDraw(f *testing.F) {
	f.Add("</text><script>alert(1)</script>", "A PAR - BUR", true)
	f.Add("]]>\x00\xff\ufffe&<'\"", "F STP/SC S A MOS - LVN", false)
	f.Add(strings.Repeat("é ", 1<<12), "NTH C LON - NWY VIA", true)
	f.Add("bounce", "PAR S PAR", false)
	f.Add("disband", "A PAR - PAR", true)
	f.Add("", "WAIVE", true)
	f.Add("", "PAR B", true)
	f.Fuzz(func(t *testing.T, text, order string, dislodged bool) {
		o, err := rules.Parse(drawer().board, order)
		if err != nil {
			return
		}
		s := Scene{Title: text, Orders: []Order{{Order: o, Power: rules.Italy, Dislodged: dislodged, Results: []string{text}}}}
		if o.Kind != rules.Waive {
			s.Units = []Unit{{Unit: rules.Unit{Power: rules.Italy, Type: rules.Army, Location: o.At}, Dislodged: dislodged}}
		}
		picture := drawer().Draw(s)
		wellFormed(t, picture)
		if strings.Contains(picture, "<script") || strings.Contains(picture, "NaN") {
			t.Errorf("%q is in the picture unescaped", text)
		}
	})
}

func BenchmarkOverlay(b *testing.B) {
	s := game()
	for b.Loop() {
		drawer().Overlay(s)
	}
}
