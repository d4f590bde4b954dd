package trainer

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryOfSomebodyElse checks that a file that is not the server's is not overwritten.
func TestMemoryOfSomebodyElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.parley-trainer")
	for text, ok := range map[string]bool{`{"run":"r1","weight_version":7}` + "\n": true, `{"mine":1}`: false, `notes`: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Memory: path}); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
