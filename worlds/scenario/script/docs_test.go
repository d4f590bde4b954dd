package script

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestEveryKeyIsDocumented compares the keys that files may have with their document.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "worlds", "scenario.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range []any{situation{}, features{}, actor{}, metricFile{}, metric{}, extraction{}, checkFile{}, checks{}, eventFile{}, event{}} {
		for f := range reflect.TypeOf(file).Fields() {
			n++
			if key := f.Tag.Get("json"); !strings.Contains(string(b), "`"+key+"`") && !strings.Contains(string(b), "`"+key+":") {
				t.Errorf("docs/worlds/scenario.md does not explain %s", key)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d keys: is one of the files forgotten?", n)
	}
}
