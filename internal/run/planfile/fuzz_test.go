package planfile

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever is in a file: an error that can be shown, or a plan that survives being
// recorded.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "broken"} {
		for _, file := range planFiles(&testing.T{}, dir) {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			set, _, _ := strings.Cut(strings.Join(setsIn(src), "\n"), "\n")
			f.Add(src, set)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, set string) {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		p, err := Parse("plan.yaml", src, testKinds(), sets)
		if err != nil {
			showable(t, err)
			return
		}
		again, err := FromJSON(p.JSON(), testKinds(), nil)
		if err != nil {
			t.Fatalf("recorded as %s: %v", p.JSON(), err)
		}
		if string(again.JSON()) != string(p.JSON()) {
			t.Fatalf("recorded as\n%s\nread back as\n%s", p.JSON(), again.JSON())
		}
		if _, err := p.World(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	for _, file := range planFiles(&testing.T{}, "good") {
		src, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, err := FromJSON(json.RawMessage(src), testKinds(), nil); err != nil {
			showable(t, err)
		}
	})
}

// showable checks that an error is one of ours, on lines of its own, as text a terminal
// can be given.
func showable(t *testing.T, err error) {
	t.Helper()
	var all Errors
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	for _, e := range all {
		lines := strings.Split(e.Error(), "\n")
		if len(lines) != 1 && len(lines) != 3 {
			t.Fatalf("%d lines: %q", len(lines), e.Error())
		}
		if e.Problem == "" || e.Line < 0 || e.Column < 0 {
			t.Fatalf("%+v", e)
		}
		for _, l := range lines {
			if !utf8.ValidString(l) || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7F || r == 0x1B }) {
				t.Fatalf("cannot be shown: %q", l)
			}
		}
	}
}
