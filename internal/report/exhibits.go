package report

import (
	"context"
	"strings"
	"sync"

	"parley/internal/report/exhibit"
	"parley/internal/report/page"
	"parley/world"
)

// KindSection is the ID of the section with the exhibits of the kind.
const KindSection = "kind"

// made waits for the exhibits of a kind, and returns what exhibit.Made does.
type made func() (all []world.Exhibit, failed, err error)

// makeExhibits makes the exhibits of the kind while its caller continues. The caller must wait for them.
func makeExhibits(ctx context.Context, s Source) made {
	var all []world.Exhibit
	var failed, err error
	var wg sync.WaitGroup
	wg.Go(func() { all, failed, err = exhibit.Made(ctx, s.Kind, s.Run, s.Journal) })
	return func() ([]world.Exhibit, error, error) {
		wg.Wait()
		return all, failed, err
	}
}

// exhibits returns the section with the exhibits of the kind.
func exhibits(s Source, wait made, colours *exhibit.Palette) (out page.Section, err error) {
	all, failed, err := wait()
	s.problems.note(failed)
	out = page.Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := exhibit.Block(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out, err
}
