package planfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
)

// namedParam matches the param that an error of a kind names.
var namedParam = regexp.MustCompile(`^(.*?: )?params\.([^:]+):\s*(.*)`)

// namedAgent matches the agent that an error names.
var namedAgent = regexp.MustCompile(`(?s)^agents\.([^:]+): (.*)`)

// ParamsError returns an error of a kind with the file and line of the param or the agent that it names. If it names none, or c is nil because
// the plan has no file, it returns the error as it is.
func (c *Checker) ParamsError(kind string, err error, params yamltree.Path, tried map[string]int) error {
	if c == nil || err == nil {
		return err
	}
	own := &Checker{Report: &Report{Source: c.Source}, Tree: c.Tree}
	if m := namedAgent.FindStringSubmatch(err.Error()); m != nil {
		own.Complain(yamltree.Path{"agents", m[1]}, "%s", m[2])
		return own.Err()
	}
	if !namedParam.MatchString(err.Error()) {
		return err
	}
	own.ComplainOfParams(kind, err, params, tried)
	return own.Err()
}

// ComplainOfParams reports an error of a kind about params, each line at the param that it names. params is where they are. tried
// has the params that a matrix varies, with the indexes of their values.
func (c *Checker) ComplainOfParams(kind string, err error, params yamltree.Path, tried map[string]int) {
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), kind+": ")
		here := params
		if m := namedParam.FindStringSubmatch(line); m != nil {
			named, rest := m[2], m[3]
			line = m[1] + rest
			here = c.Param(named, rest, params, tried)
		}
		if line != "" {
			c.Complain(here, "%s", oneLine(line, 500))
		}
	}
}

// Param returns where the plan has the param that a problem is about. params and tried are as those of ComplainOfParams.
func (c *Checker) Param(named, problem string, params yamltree.Path, tried map[string]int) yamltree.Path {
	if here := c.tried(tried, named, problem); here != nil {
		return here
	}
	steps := c.Tree.Find(params).Steps(named)
	if c.Tree.Find(params).Field(steps[0]) == nil {
		params = yamltree.Path{"params"} // the matrix does not vary it
	}
	return append(slices.Clone(params), steps...)
}

// tried returns where the matrix has the value that a problem is about: of the param that it names, of one that holds that, or of
// one such as set.turns whose problem begins with the rest of its name. It is nil if the matrix does not vary it.
func (c *Checker) tried(tried map[string]int, named, problem string) yamltree.Path {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(tried))) { // pool.warm before pool: it is applied later
		here := yamltree.Path{"plan", "matrix", "params", name, yamltree.Index(tried[name])}
		head, rest, dotted := strings.Cut(name, ".")
		switch inner, within := strings.CutPrefix(named, name+"."); {
		case within:
			return append(here, c.Tree.Find(here).Steps(inner)...)
		case name == named, dotted && head == named && strings.HasPrefix(problem, rest+": "):
			return here
		}
	}
	return nil
}
