package format

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// path selects members of a request. It is a subset of JSONPath.
type path []step

// step selects a member or an element of a value or, with all, every one.
type step struct {
	name  string
	index int // -1: select by name
	all   bool
}

const maxSteps = 32

// renamed returns the recorded name of a member that clients call differently.
func renamed(name string) string {
	switch name {
	case "max_completion_tokens", "max_output_tokens":
		return "max_tokens"
	case "reasoning_effort":
		return "effort"
	case "response_format":
		return "schema"
	case "service_tier":
		return "tier"
	case "input":
		return "messages"
	default:
		return name
	}
}

// parsePath reads $.name, $['name'], $.list[0], $.list[*] and combinations of these.
func parsePath(s string) (path, error) {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return nil, errors.New("a path begins with $, as $.metadata.user")
	}
	var p path
	for rest != "" {
		one, after, err := nextStep(rest)
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", len(s)-len(rest)+1, err)
		}
		p, rest = append(p, one), after
	}
	switch {
	case len(p) == 0:
		return nil, errors.New("it leads to the whole request; name a member, as $.metadata.user")
	case len(p) > maxSteps:
		return nil, fmt.Errorf("it has %d steps; at most %d are allowed", len(p), maxSteps)
	}
	p[0].name = renamed(p[0].name)
	return p, nil
}

func nextStep(s string) (one step, rest string, err error) {
	if name, ok := strings.CutPrefix(s, "."); ok {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		if name, rest = name[:end], name[end:]; name == "" {
			return one, "", errors.New("a name is missing after the dot; $..name is not supported, write every step")
		}
		return step{name: name, index: -1, all: name == "*"}, rest, nil
	}
	inside, ok := strings.CutPrefix(s, "[")
	if !ok {
		return one, "", fmt.Errorf("%q: want .name, [N] or [*]", s)
	}
	if quoted, ok := strings.CutPrefix(inside, "'"); ok {
		name, rest, ok := strings.Cut(quoted, "']")
		if !ok || name == "" {
			return one, "", errors.New("want ['name']")
		}
		return step{name: name, index: -1}, rest, nil
	}
	inside, rest, ok = strings.Cut(inside, "]")
	if !ok {
		return one, "", errors.New("the bracket is not closed")
	}
	if inside == "*" {
		return step{index: -1, all: true}, rest, nil
	}
	n, err := strconv.ParseUint(inside, 10, 31)
	if err != nil {
		return one, "", fmt.Errorf("[%s]: want a number from 0, *, or a name in single quotes; filters and slices are not supported", inside)
	}
	return step{index: int(n)}, rest, nil
}

// remove removes what p selects from v. An element of a list becomes null, so that the others keep their
// index.
func (p path) remove(v any) {
	one, last := p[0], len(p) == 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch {
			case one.index >= 0 || !one.all && name != one.name:
			case last:
				delete(v, name)
			default:
				p[1:].remove(member)
			}
		}
	case []any:
		for i, element := range v {
			switch {
			case !one.all && i != one.index:
			case last:
				v[i] = nil
			default:
				p[1:].remove(element)
			}
		}
	}
}
