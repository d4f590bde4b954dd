package training

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPositionOfSomebodyElse checks that a file that is not a position is not overwritten.
func TestPositionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.parley-position")
	for text, ok := range map[string]bool{`{"cursor":"7"}` + "\n": true, `{"mine":1}`: false, `notes`: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openPosition(path); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
