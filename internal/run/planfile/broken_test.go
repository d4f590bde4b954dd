package planfile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
)

// planFiles lists the plans of a folder of testdata.
func planFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans in %s: %v", dir, err)
	}
	return files
}

// setsIn returns the overrides that a test plan asks for in comments.
func setsIn(src []byte) []string {
	var sets []string
	for _, m := range regexp.MustCompile(`(?m)^# set: (.*)$`).FindAllSubmatch(src, -1) {
		sets = append(sets, string(m[1]))
	}
	return sets
}

func TestBroken(t *testing.T) {
	t.Parallel()
	files := planFiles(t, "broken")
	if len(files) < 50 {
		t.Errorf("%d broken plans: want at least 50", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse("plan.yaml", src, testKinds(), setsIn(src))
			if err == nil {
				t.Fatalf("no error: %s", p.JSON())
			}
			testkit.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// What the broken plans hold as keys is in no error.
func TestErrorsShowNoSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"sk-live-0123456789abcdefghij", "gsk_Ab3dEf6hIj9lMnOpQrSt", "hunter2", "abcdefghijklmnop", "tok-55555",
		"passw0rd", "correct-horse-battery", "verysecretvalue99", "abcdef0123456789abcdef", "v=7",
	}
	seen := map[string]bool{}
	for _, file := range planFiles(t, "broken") {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Also with the file cut off, so that it is read before it is whole.
		for _, cut := range []int{0, 1, 3, 20} {
			part := src[:max(0, len(src)-cut)]
			_, err = Parse("plan.yaml", part, testKinds(), setsIn(part))
			for _, s := range secrets {
				seen[s] = seen[s] || strings.Contains(string(src), s)
				if err != nil && strings.Contains(err.Error(), s) {
					t.Errorf("%s: %q is in\n%v", file, s, err)
				}
			}
		}
	}
	for _, s := range secrets {
		if !seen[s] {
			t.Errorf("%q is in no plan", s)
		}
	}
}
