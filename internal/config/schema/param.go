package schema

import (
	"regexp"
	"slices"
	"strings"

	"parley/internal/config/document"
	"parley/internal/yamltree"
)

// namedParam matches the param that an error of a kind names.
var namedParam = regexp.MustCompile(`^(.*?: )?params\.([^:]+):\s*(.*)`)

// NamesParam reports whether an error of a kind names a param.
func NamesParam(err error) bool { return namedParam.MatchString(err.Error()) }

// ComplainOfParams reports an error of a kind about params, each line at the param that it names. params is where they are.
func (c *Checker) ComplainOfParams(kind string, err error, params yamltree.Path) {
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), kind+": ")
		here := params
		if m := namedParam.FindStringSubmatch(line); m != nil {
			named, rest := m[2], m[3]
			line = m[1] + rest
			if inner := c.variedWithin(params, named, rest); inner != "" {
				here = params.To(inner)
			} else {
				steps := c.Tree.Find(params).Steps(named)
				if c.Tree.Find(params).Field(steps[0]) == nil {
					here = yamltree.Path{"params"} // the matrix does not vary it
				}
				here = append(slices.Clone(here), steps...)
			}
		}
		if line != "" {
			c.Complain(here, "%s", document.OneLine(line, 500))
		}
	}
}

// variedWithin finds the key of a matrix, such as set.turns, that a problem is about: the param it
// names, or one whose problem begins with the rest of the key.
func (c *Checker) variedWithin(params yamltree.Path, named, problem string) string {
	if len(params) < 2 {
		return "" // no matrix
	}
	for _, f := range c.Tree.Find(params).Fields {
		head, rest, dotted := strings.Cut(f.Name, ".")
		if dotted && (f.Name == named || head == named && strings.HasPrefix(problem, rest+": ")) {
			return f.Name
		}
	}
	return ""
}
