package worlds_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/world"
	"parley/worlds"
)

// TestTablesAreDocumented checks that the page of a kind describes each table that it makes, with its columns.
func TestTablesAreDocumented(t *testing.T) {
	t.Parallel()
	n := 0
	for _, k := range worlds.Standard() {
		maker, ok := world.As[world.Tabulator](k)
		if !ok {
			continue
		}
		page, err := os.ReadFile(filepath.Join("..", "docs", "worlds", k.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range maker.Tables() {
			n++
			var b strings.Builder
			fmt.Fprintf(&b, "### Table `%s`: %s\n\n| column | type | is |\n|---|---|---|\n", table.Name, table.Doc)
			for _, c := range table.Columns {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Doc)
			}
			if !strings.Contains(string(page), b.String()) {
				t.Errorf("docs/worlds/%s.md lacks:\n%s", k.Name, b.String())
			}
		}
	}
	if n < 7 {
		t.Errorf("%d tables", n)
	}
}
