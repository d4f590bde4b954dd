package browser

import (
	"fmt"
	"html"
	"image"
	"image/color"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
)

// pictureOf takes a picture of a page with a browser of this name, on a desktop with the scheme light or dark. It skips the test if there
// is no such browser.
func pictureOf(t *testing.T, browser, page, scheme string, height int) image.Image {
	t.Helper()
	path, err := exec.LookPath(browser)
	if err != nil {
		t.Skipf("there is no %s: install it to look at pictures (on Debian: apt-get install %s)", browser, browser)
	}
	dir := t.TempDir()
	file, number := filepath.Join(dir, "page.png"), map[string]string{"dark": "0", "light": "1"}[scheme]
	size := fmt.Sprintf("--window-size=1000,%d", height)
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + dir, "--blink-settings=preferredColorScheme=" + number, size, "--screenshot=" + file, page}
	if strings.HasPrefix(browser, "firefox") {
		desktop := map[string]string{"dark": "1", "light": "0"}[scheme] // which frames follow
		settings := `user_pref("layout.css.prefers-color-scheme.content-override", ` + number + ");\n" + `user_pref("ui.systemUsesDarkTheme", ` + desktop + ");\n"
		if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		args = []string{"--headless", "--no-remote", "--profile", dir, size, "--screenshot", file, page}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// drawn is a part of a page, and what must be seen of it.
type drawn struct {
	name    string
	page    string // its style sheets and the part
	colours int    // how many it has at least, apart from greys
}

// part returns the part of a page between two texts, with the style sheets of the page.
func part(t *testing.T, page, styles, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, from)
	body, _, ends := strings.Cut(rest, to)
	if !ok || !ends {
		t.Fatalf("the page has no %s before %s: %s", from, to, page)
	}
	return "<!DOCTYPE html><meta name=color-scheme content='light dark'>" + styles + strings.Join(styleElements.FindAllString(page, -1), "") + from + body
}

var (
	styleElements = regexp.MustCompile(`(?s)<style[^>]*>.*?</style>`)
	styleSheet    = regexp.MustCompile(`<link rel="stylesheet" href="([^"]*)"`)
)

// ordinary has one exhibit of each kind, with names as people use them.
type ordinary struct{ everyExhibit }

func (g *ordinary) Exhibits() []exhibit.Exhibit {
	s := &g.points
	return []exhibit.Exhibit{
		{Name: "estimates", Title: "estimates", Show: exhibit.Estimates{By: []string{"agent"}, What: "points", Rows: []exhibit.Estimated{{Labels: []string{"ann"}, Sample: s}}}},
		{Name: "heat", Title: "heat", Show: exhibit.HeatMap{Row: "agent", Column: "against", Rows: []string{"ann"}, Columns: []string{"bob"}, Cells: [][]*world.Sample{{s}}}},
		{Name: "curves", Title: "curves", Show: exhibit.Curves{X: "year", Y: "points", Curves: []exhibit.Curve{{Name: "ann", Points: []exhibit.CurvePoint{{X: 1, Sample: s}, {X: 2, Sample: s}}}}}},
		{Name: "scatter", Title: "scatter", Show: exhibit.Scatter{X: "points", Y: "share", Points: []exhibit.ScatterPoint{{Name: "ann", X: s, Y: s}}}},
		{Name: "bars", Title: "bars", Show: exhibit.Bars{X: "agent", Y: "points", Labels: []string{"ann", "bob"}, Series: []exhibit.BarSeries{{Name: "points", Values: []float64{1, 2}}}}},
		{Name: "grid", Title: "grid", Show: exhibit.Grid{Columns: []string{"agent"}, Rows: [][]any{{"ann"}}}},
		{Name: "text", Title: "text", Show: exhibit.Text{Body: "Some words.", Pre: true}},
		{Name: "figure", Title: "figure", Show: exhibit.Figure{SVG: `<svg viewBox="0 0 90 20"><style>.r{fill:#b00}</style><defs><g id="r"><rect class="r" width="9" height="9"/></g></defs><use href="#r"/></svg>`}},
	}
}

// exhibits returns everything that a kind of world can draw: its exhibits in a report, and a board in a report, on the page of an episode,
// and on that of a seat.
func exhibits(t *testing.T) (all []drawn) {
	t.Helper()
	colours := map[string]int{"estimates": 1, "heat": 1, "curves": 1, "scatter": 1, "bars": 1, "grid": 0, "text": 0, "figure": 1}
	page := pageOf(t, func() exhibit.Exhibitor { return &ordinary{} })
	for _, name := range []string{"estimates", "heat", "curves", "scatter", "bars", "grid", "text", "figure"} {
		all = append(all, drawn{"the exhibit " + name, part(t, page, "", "<h3>"+name+"</h3>", "</figure>"), colours[name]})
	}

	const boardColours = 8
	bin, folder := program(t), t.TempDir()
	for name, model := range map[string]string{"done": "sim/large", "run": "human, deadline: 10m"} {
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(board(model)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done, file := filepath.Join(folder, "done.parley"), filepath.Join(folder, "report.html")
	for _, args := range [][]string{{"run", filepath.Join(folder, "done.yaml"), "--out", done, "--quiet"}, {"report", done, "--html", file}} {
		if out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, drawn{"the board of a report", part(t, string(report), "", `<div class="board"`, `<div class="beside"`), boardColours})

	play := filepath.Join(folder, "run.parley")
	begin(t, bin, "run", filepath.Join(folder, "run.yaml"), "--out", play, "--quiet")
	waitForFile(t, play+"-seats")
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	for _, v := range []struct{ name, address, from, to string }{
		{"the board of an episode", "/run/done.parley/episodes/0?story=1", `<div class="board"`, `<div class="beside"`},
		{"the board of a seat", "/run/run.parley/seats/FRANCE", `<figure class="seat-picture">`, "</figure>"},
	} {
		page := fetch(t, site+v.address, key)
		link := styleSheet.FindStringSubmatch(page)
		if link == nil {
			t.Fatalf("%s has no style sheet: %s", v.name, page)
		}
		all = append(all, drawn{v.name, part(t, page, "<style>"+fetch(t, site+link[1], key)+"</style>", v.from, v.to), boardColours})
	}
	return all
}

// The size of a cell of the page with all exhibits, and how many cells a row has.
const (
	cellWidth, cellHeight = 490, 420
	cellsInRow            = 2
)

// TestExhibitsHaveColours looks at pictures of everything that a kind of world can draw, in two browsers, light and dark. An exhibit whose
// style sheet does not reach what is drawn is black, although all of its elements are there.
func TestExhibitsHaveColours(t *testing.T) {
	all := exhibits(t)
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><meta name=color-scheme content='light dark'><style>body{margin:0}iframe{border:0;position:absolute}</style>")
	for i, d := range all { // a frame keeps the style sheets of a page from the others
		fmt.Fprintf(&b, `<iframe width=%d height=%d style="left:%dpx;top:%dpx" srcdoc="%s"></iframe>`, cellWidth, cellHeight, i%cellsInRow*cellWidth, i/cellsInRow*cellHeight, html.EscapeString(d.page))
	}
	page := saved(t, "exhibits.html", b.String())
	for _, browser := range []string{"chromium", "firefox-esr"} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(browser+" "+scheme, func(t *testing.T) {
				picture := pictureOf(t, browser, page, scheme, (len(all)+cellsInRow-1)/cellsInRow*cellHeight)
				for i, d := range all {
					at := image.Pt(i%cellsInRow*cellWidth, i/cellsInRow*cellHeight)
					d.look(t, picture, image.Rectangle{at, at.Add(image.Pt(cellWidth, cellHeight))}, scheme)
				}
			})
		}
	}
}

// look checks the colours of a part of a picture.
func (d drawn) look(t *testing.T, picture image.Image, in image.Rectangle, scheme string) {
	t.Helper()
	paper := color.GrayModel.Convert(picture.At(in.Min.X+2, in.Min.Y+2)).(color.Gray).Y
	black, ink, colours := 0, 0, map[[3]uint32]bool{}
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			at := picture.At(x, y)
			r, g, b, _ := at.RGBA()
			if r+g+b == 0 {
				black++
			}
			if grey := color.GrayModel.Convert(at).(color.Gray).Y; max(grey, paper)-min(grey, paper) > 60 {
				ink++
			}
			if max(r, g, b)-min(r, g, b) > 0x3000 { // not a grey
				colours[[3]uint32{r >> 13, g >> 13, b >> 13}] = true
			}
		}
	}
	if black > cellWidth*cellHeight/50 || ink < 40 || len(colours) < d.colours || (paper < 128) != (scheme == "dark") {
		t.Errorf("%s: %d of %d points are black, %d differ from the paper, which has the brightness %d, and there are %d colours; want %d", d.name, black, cellWidth*cellHeight, ink, paper, len(colours), d.colours)
	}
}
