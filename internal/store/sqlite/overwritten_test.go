package sqlite

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley/internal/store/sqlite/schema"
)

// TestOverwrittenPages: if SQLite cannot read a page, the episodes that it held are named, and the others are read.
func TestOverwrittenPages(t *testing.T) {
	t.Parallel()
	d, file := newDamaged(t)
	last := len(file)/schema.PageSize - 1
	for _, n := range []int{last - 1, last} {
		spoiled := slices.Clone(file)
		copy(spoiled[n*schema.PageSize:], bytes.Repeat([]byte{0xff}, schema.PageSize))
		d.check(fmt.Sprintf("page %d is overwritten", n+1), spoiled)
	}
	if d.named != 2 {
		t.Errorf("%d were named, and %d made the file unreadable", d.named, d.beyond)
	}
}
