package report

import (
	"strings"
)

// KindSection is the ID of the section with the exhibits of the kind.
const KindSection = "kind"

// exhibits returns the section with the exhibits of the kind.
func exhibits(s Source, made wait, colours *Palette) (out Section, err error) {
	all, failed, err := made()
	s.problems.note(failed)
	out = Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := ExhibitBlock(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out, err
}
