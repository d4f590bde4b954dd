package runfile

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestOverwrittenPages: if SQLite cannot read a page, the episodes that it held are named, and the others are read.
func TestOverwrittenPages(t *testing.T) {
	t.Parallel()
	d, file := newDamaged(t)
	last := len(file)/PageSize - 1
	for _, n := range []int{last - 1, last} {
		spoiled := slices.Clone(file)
		copy(spoiled[n*PageSize:], bytes.Repeat([]byte{0xff}, PageSize))
		d.check(fmt.Sprintf("page %d is overwritten", n+1), spoiled)
	}
	if d.named != 2 {
		t.Errorf("%d were named, and %d made the file unreadable", d.named, d.beyond)
	}
}

// TestSpoiledPages: empty, swapped and missing pages are noticed. Each page is damaged in one of these ways, or with PARLEY_SWEEP in all.
func TestSpoiledPages(t *testing.T) {
	t.Parallel()
	atLength(t)
	d, file := newDamaged(t)
	page := func(b []byte, n int) []byte { return b[n*PageSize : (n+1)*PageSize] }
	pages := len(file) / PageSize
	for n := range pages {
		for way := range 3 {
			spoiled := slices.Clone(file)
			switch {
			case way != n%3 && os.Getenv("PARLEY_SWEEP") == "":
			case way == 0:
				clear(page(spoiled, n))
				d.check(fmt.Sprintf("page %d is empty", n+1), spoiled)
			case way == 1 && n > 0:
				copy(page(spoiled, n), page(file, 1+n%(pages-1)))
				d.check(fmt.Sprintf("page %d is another", n+1), spoiled)
			case way == 2:
				d.check(fmt.Sprintf("cut at page %d", n+1), file[:n*PageSize+n])
			}
		}
	}
	if d.named == 0 || d.beyond == 0 {
		t.Errorf("%d were named and %d made the file unreadable", d.named, d.beyond)
	}
}
