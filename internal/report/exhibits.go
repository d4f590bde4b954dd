package report

import (
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
func exhibits(s Source, colours *exhibit.Palette) page.Section {
	reporter, ok := world.As[world.Reporter](s.Kind)
	if !ok {
		return page.Section{}
	}
	all, err := makeExhibits(reporter, s)
	s.problems.note(err)
	out := page.Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := exhibit.Block(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out
}

// makeExhibits calls the kind for its exhibits.
func makeExhibits(reporter world.Reporter, s Source) (all []world.Exhibit, err error) {
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
		{"Add", func() error { s.Run.Each(x.Add); return nil }},
		{"Exhibits", func() error { all = x.Exhibits(); return nil }},
	} {
		if err := optional.Call(s.Kind, part.name, part.call); err != nil {
			return nil, err
		}
	}
	return all, nil
}
