package browser

import (
	"image"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pictureOf takes a picture of a page with a browser of this name, on a desktop with the scheme light or dark. It skips the test if there
// is no such browser.
func pictureOf(t *testing.T, browser, page, scheme string) image.Image {
	t.Helper()
	path, err := exec.LookPath(browser)
	if err != nil {
		t.Skipf("there is no %s: install it to look at pictures (on Debian: apt-get install %s)", browser, browser)
	}
	dir := t.TempDir()
	file, number := filepath.Join(dir, "page.png"), map[string]string{"dark": "0", "light": "1"}[scheme]
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + dir, "--blink-settings=preferredColorScheme=" + number, "--window-size=1000,1100", "--screenshot=" + file, page}
	if strings.HasPrefix(browser, "firefox") {
		settings := `user_pref("layout.css.prefers-color-scheme.content-override", ` + number + ");\n"
		if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		args = []string{"--headless", "--no-remote", "--profile", dir, "--window-size=1000,1100", "--screenshot", file, page}
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

// TestBoardHasColours looks at the board of a game of Diplomacy in a report: a board whose style sheet does not reach what is drawn is
// black, although all of its elements are there.
func TestBoardHasColours(t *testing.T) {
	bin, dir := program(t), t.TempDir()
	run, page := filepath.Join(dir, "run.parley"), filepath.Join(dir, "report.html")
	for _, args := range [][]string{{"run", "../../../examples/diplomacy.yaml", "--out", run}, {"report", run, "--html", page}} {
		if out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	report, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, replay, ok := strings.Cut(string(report), `<div class="replay"`)
	if !ok {
		t.Fatal("the report has no replay")
	}
	styles := regexp.MustCompile(`(?s)<style>.*?</style>`).FindAllString(string(report), -1)
	cut := saved(t, "board.html", "<!DOCTYPE html>"+strings.Join(styles, "")+`<div class="replay"`+replay)
	for _, browser := range []string{"chromium", "firefox-esr"} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(browser+" "+scheme, func(t *testing.T) {
				picture := pictureOf(t, browser, cut, scheme)
				black, colours := 0, map[[3]uint32]int{}
				for y := 60; y < 500; y += 3 { // the map, without the buttons above it
					for x := 20; x < 560; x += 3 {
						r, g, b, _ := picture.At(x, y).RGBA()
						if r+g+b == 0 {
							black++
						}
						if max(r, g, b)-min(r, g, b) > 0x1000 { // not a grey
							colours[[3]uint32{r >> 12, g >> 12, b >> 12}]++
						}
					}
				}
				if black > 1000 || len(colours) < 8 {
					t.Errorf("%d of about 26,000 points are black, and there are %d colours", black, len(colours))
				}
			})
		}
	}
}
