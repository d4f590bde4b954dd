// Part person checks the agents of a plan file that are people.
//
// It decodes nothing: package config does.

package planfile

import (
	"maps"
	"slices"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/world"
)

// checkPerson checks the keys of an agent that is a person: settings of models are refused. all are the agents of the file.
func checkPerson(r *Checker, a world.Agent, all map[string]world.Agent) {
	here := yamltree.Path{"agents", a.Name}
	for _, f := range r.Tree.Find(here).Fields {
		if !slices.Contains([]string{"model", "deadline", "fallback", "tags"}, f.Name) {
			r.ComplainOfKey(here.To(f.Name), "a person has no model behind it: leave %s out; a person can have deadline, fallback and tags", f.Name)
		}
	}
	if a.Fallback == "" {
		return
	}
	at := here.To("fallback")
	f, known := all[a.Fallback]
	switch {
	case r.Tree.Find(here).Field("deadline") == nil:
		r.Complain(at, "is never used without a deadline: add one, as deadline: 10m")
	case !known:
		names := slices.Sorted(maps.Keys(all))
		r.Complain(at, "no agent is named %s%s agents: %s", r.Quote(a.Fallback), schemaHint(text.Suggest(a.Fallback, names)), documentListed(names))
	case f.Model == "" || f.Human():
		r.Complain(at, "%s has no model: name an agent with one, or leave fallback out, and a call without an answer fails", r.Quote(a.Fallback))
	}
}

// checkAll refuses what agents cannot do: people cannot be asked in waves, and only people have a deadline.
func checkAll(r *Checker, agents []world.Agent, pace string) {
	for _, a := range agents {
		here := yamltree.Path{"agents", a.Name}
		switch {
		case a.Human() && pace == "wave":
			r.Complain(here.To("model"), "a person cannot be asked in waves: every episode would wait for each answer; use pace: free")
		case !a.Human() && a.Deadline > 0:
			r.ComplainOfKey(here.To("deadline"), "is for people (model: human): the timeout of a provider limits the time of a model")
		case !a.Human() && a.Fallback != "":
			r.ComplainOfKey(here.To("fallback"), "is for people (model: human): fallbacks lists models to ask if this one cannot answer")
		}
	}
}

// checkSeats refuses a matrix that puts two people into a seat, one after the other: whoever sits there sees what the
// seat was asked in all episodes.
func checkSeats(r *Checker, agents []world.Agent, lineups func() []map[string]string) {
	people := map[string]bool{}
	for _, a := range agents {
		if a.Human() {
			people[a.Name] = true
		}
	}
	if len(people) < 2 {
		return
	}
	sits := map[string]string{}
	for _, lineup := range lineups() {
		for _, name := range slices.Sorted(maps.Keys(lineup)) {
			person := lineup[name]
			if before := sits[name]; people[person] && before != "" && before != person {
				r.Complain(yamltree.Path{"plan", "matrix"}, "puts two people into the seat %s, %s and %s: who sits in a seat sees all of its episodes, so give each person a seat of their own", name, before, person)
			} else if people[person] {
				sits[name] = person
			}
		}
	}
}

// addFallbacks adds the fallbacks of people in seats to the agents that take part.
func addFallbacks(seated map[string]bool, agents []world.Agent) {
	for _, a := range agents {
		if seated[a.Name] && a.Fallback != "" {
			seated[a.Fallback] = true
		}
	}
}
