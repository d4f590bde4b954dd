package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"parley/world"
)

// TestSplitAbout reads what a path says of a session.
func TestSplitAbout(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		id, agent, condition, task, tag string
		wrong                           bool
	}{
		"try-1":                               {id: "try-1"},
		"try-1;agent=a;condition=c;task=t":    {id: "try-1", agent: "a", condition: "c", task: "t"},
		"try;tag.prompt=x%3By;agent=a%20b":    {id: "try", agent: "a b", tag: "x;y"},
		"try%3Bagent=a":                       {id: "try;agent=a"},
		"try;colour=red":                      {wrong: true},
		"try;agent=%zz":                       {wrong: true},
		"try;":                                {wrong: true},
		"try;agent=" + strings.Repeat("a", 9): {id: "try", agent: strings.Repeat("a", 9)},
	} {
		id, a, err := splitAbout(in)
		if (err != nil) != want.wrong {
			t.Errorf("%s: %v", in, err)
		}
		if err == nil && (id != want.id || a.Agent != want.agent || a.Condition != want.condition || a.Task != want.task || a.Tags["prompt"] != want.tag) {
			t.Errorf("%s: %q %+v", in, id, a)
		}
	}
}

// TestAboutHeaders wants headers to add to the path, and names that cannot be shown to be refused.
func TestAboutHeaders(t *testing.T) {
	t.Parallel()
	h := http.Header{"X-Parley-Agent": {"header"}, "X-Parley-Task": {"maze"}, "X-Parley-Tags": {"a=1, b=2", "c=3"}}
	a, err := about{Agent: "path", Tags: map[string]string{"b": "path"}}.withHeaders(h)
	if err != nil || a.Agent != "path" || a.Task != "maze" || a.Tags["a"] != "1" || a.Tags["b"] != "path" || a.Tags["c"] != "3" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := (about{}).withHeaders(http.Header{"X-Parley-Tags": {"no value"}}); err == nil {
		t.Error("a tag without a value is taken")
	}
	many := map[string]string{}
	for i := range maxTags + 1 {
		many[strings.Repeat("x", i+1)] = ""
	}
	for what, bad := range map[string]about{
		"escape":     {Agent: "a\x1b[2Jb"},
		"new line":   {Task: "a\nb"},
		"no UTF-8":   {Condition: "\xff"},
		"long":       {Agent: strings.Repeat("a", maxName+1)},
		"tag's name": {Tags: map[string]string{"": "x"}},
		"many tags":  {Tags: many},
		"tag":        {Tags: map[string]string{"x": "\u202e\n"}},
	} {
		if bad.check() == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if !(about{Agent: "a", Task: "t"}).agrees(about{Task: "t"}) || (about{Agent: "a"}).agrees(about{Agent: "b"}) || (about{}).agrees(about{Tags: map[string]string{"x": "y"}}) {
		t.Error("agrees is wrong")
	}
}

// TestManyAgents bounds the agents of a record.
func TestManyAgents(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	for i := range maxAgents {
		l.begun.Agents = append(l.begun.Agents, agentNamed(i))
	}
	if err := l.addAgent(agentNamed(3).Name); err != nil {
		t.Error(err)
	}
	if err := l.addAgent("one more"); err == nil {
		t.Error("a record has any number of agents")
	}
}

func agentNamed(i int) world.Agent { return world.Agent{Name: strconv.Itoa(i)} }
