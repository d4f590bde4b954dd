package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/world"
)

// about is what a client says of a session when it begins: who plays, under which condition, and what it works on. Readers of the record group
// its scores by that.
type about struct {
	Agent     string            `json:"agent,omitempty"`
	Condition string            `json:"condition,omitempty"`
	Task      string            `json:"task,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
}

func (a about) empty() bool { return a.Agent+a.Condition+a.Task == "" && len(a.Tags) == 0 }

func (a about) agent() string { return cmp.Or(a.Agent, clientSeat) }

// cell returns the cell of the session: its condition. A session of which nothing is said is a cell of its own.
func (a about) cell(session sessionName) string {
	if a.empty() {
		return session.ID
	}
	return a.Condition
}

// words says whose sessions these are.
func (a about) words() string {
	said := []string{"agent " + a.agent()}
	if a.Condition != "" {
		said = append(said, "condition "+a.Condition)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tags)) {
		said = append(said, name+" "+a.Tags[name])
	}
	return strings.Join(said, ", ")
}

// seat returns the seat of the scores of the session: those of an agent are about it.
func (a about) seat() string {
	if a.Agent == "" {
		return ""
	}
	return clientSeat
}

// agrees reports whether a later call may say b of a session that began with a: it repeats some of it.
func (a about) agrees(b about) bool {
	same := func(was, is string) bool { return is == "" || is == was }
	for name, value := range b.Tags {
		if was, ok := a.Tags[name]; !ok || was != value {
			return false
		}
	}
	return same(a.Agent, b.Agent) && same(a.Condition, b.Condition) && same(a.Task, b.Task)
}

// aboutOf returns what a recorded session began with.
func aboutOf(spec world.Spec, p params) about {
	a := about{Task: p.Task, Condition: p.Condition, Tags: p.Tags}
	if agent := spec.Lineup[clientSeat]; agent != clientSeat {
		a.Agent = agent
	}
	return a
}

// maxTags bounds the tags of a session, and maxName the length of a name in bytes.
const (
	maxTags = 16
	maxName = 200
)

// check refuses names that cannot be shown in one line.
func (a about) check() error {
	name := func(what, s string) error {
		if len(s) > maxName || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			return fmt.Errorf("%s: want at most %d bytes, all of them visible", what, maxName)
		}
		return nil
	}
	if len(a.Tags) > maxTags {
		return fmt.Errorf("tags: %d are given: at most %d are possible", len(a.Tags), maxTags)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Tags)) {
		if key == "" {
			return fmt.Errorf("tags: a tag has no name: want NAME=VALUE")
		}
		if err := name("the name of a tag", key); err != nil {
			return err
		}
		if err := name("the tag "+key, a.Tags[key]); err != nil {
			return err
		}
	}
	for _, one := range [][2]string{{"the agent", a.Agent}, {"the condition", a.Condition}, {"the task", a.Task}} {
		if err := name(one[0], one[1]); err != nil {
			return err
		}
	}
	return nil
}

// set sets a member, as a path or a header says it: agent=NAME, condition=NAME, task=NAME or tag.NAME=VALUE.
func (a *about) set(said string) error {
	for prefix, to := range map[string]*string{"agent=": &a.Agent, "condition=": &a.Condition, "task=": &a.Task} {
		if value, ok := strings.CutPrefix(said, prefix); ok {
			*to = value
			return nil
		}
	}
	tag, ok := strings.CutPrefix(said, "tag.")
	name, value, whole := strings.Cut(tag, "=")
	if !ok || !whole {
		return fmt.Errorf("a session has no %q: want agent=NAME, condition=NAME, task=NAME or tag.NAME=VALUE", said)
	}
	if a.Tags == nil {
		a.Tags = map[string]string{}
	}
	a.Tags[name] = value
	return nil
}

// splitAbout splits an escaped session of a path, such as try-1;agent=mine;task=maze, into its name and what is said of it.
func splitAbout(escaped string) (id string, a about, err error) {
	id, rest, more := strings.Cut(escaped, ";")
	if id, err = url.PathUnescape(id); err != nil {
		return "", a, err
	}
	for more {
		var one string
		one, rest, more = strings.Cut(rest, ";")
		if one, err = url.PathUnescape(one); err != nil {
			return "", a, err
		}
		if err := a.set(one); err != nil {
			return id, a, err
		}
	}
	return id, a, nil
}

// withHeaders adds what headers say, and checks all of it: X-Parley-Agent, X-Parley-Condition, X-Parley-Task, and X-Parley-Tags with NAME=VALUE, separated by commas. The path wins.
func (a about) withHeaders(h http.Header) (about, error) {
	var from about
	from.Agent, from.Condition, from.Task = h.Get("X-Parley-Agent"), h.Get("X-Parley-Condition"), h.Get("X-Parley-Task")
	for _, line := range h.Values("X-Parley-Tags") {
		for one := range strings.SplitSeq(line, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(one), "=")
			if !ok {
				return a, fmt.Errorf("X-Parley-Tags: %q: want NAME=VALUE, separated by commas", one)
			}
			if err := from.set("tag." + strings.TrimSpace(name) + "=" + strings.TrimSpace(value)); err != nil {
				return a, err
			}
		}
	}
	a = a.over(from)
	return a, a.check()
}

// over returns a with what it leaves out from b.
func (a about) over(b about) about {
	tags := maps.Clone(b.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, a.Tags)
	return about{cmp.Or(a.Agent, b.Agent), cmp.Or(a.Condition, b.Condition), cmp.Or(a.Task, b.Task), tags}
}
