package report

import (
	"context"
	"errors"
	"strings"

	"parley/internal/report/exhibit"
	"parley/internal/report/page"
	"parley/internal/view/optional"
	"parley/world"
)

// KindSection is the ID of the section with the exhibits of the kind.
const KindSection = "kind"

// exhibits returns the section with the exhibits of the kind.
func exhibits(ctx context.Context, s Source, colours *exhibit.Palette) (page.Section, error) {
	reporter, ok := world.As[world.Reporter](s.Kind)
	if !ok {
		return page.Section{}, nil
	}
	all, failed, err := makeExhibits(ctx, reporter, s)
	if err != nil {
		return page.Section{}, err
	}
	s.problems.note(failed)
	out := page.Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := exhibit.Block(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out, nil
}

// makeExhibits calls the kind for its exhibits. failed is what its code did wrong, and err why the
// run could not be read.
func makeExhibits(ctx context.Context, reporter world.Reporter, s Source) (all []world.Exhibit, failed, err error) {
	var x world.Exhibitor
	for _, part := range []struct {
		name string
		call func() error
	}{
		{"Exhibitor", func() error {
			if x = reporter.Exhibitor(); x == nil {
				return errors.New("returned nil")
			}
			return nil
		}},
		{"Add", func() error {
			err = s.Run.EachWithData(ctx, s.Journal, func(p world.Played) error { x.Add(p); return nil })
			return nil
		}},
		{"Exhibits", func() error { all = x.Exhibits(); return nil }},
	} {
		if failed := optional.Call(s.Kind, part.name, part.call); failed != nil || err != nil {
			return nil, failed, err
		}
	}
	return all, nil, nil
}
