package report

import (
	"strings"

	"parley/internal/report/exhibit"
	"parley/internal/report/page"
)

// KindSection is the ID of the section with the exhibits of the kind.
const KindSection = "kind"

// exhibits returns the section with the exhibits of the kind.
func exhibits(s Source, made exhibit.Wait, colours *exhibit.Palette) (out page.Section, err error) {
	all, failed, err := made()
	s.problems.note(failed)
	out = page.Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := exhibit.Block(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out, err
}
