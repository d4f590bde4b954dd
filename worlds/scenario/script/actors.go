package script

import (
	"path"
	"slices"
	"strings"

	"parley/world"
)

// actor is a file of the folder actors.
type actor struct {
	Name               string  `json:"name"`
	ShortName          *string `json:"short_name"`
	Model              string  `json:"model"`
	System             string  `json:"system_prompt"`
	Role               string  `json:"role"`
	Description        string  `json:"description"`
	Goals              any     `json:"goals"`
	Constraints        any     `json:"constraints"`
	Expertise          any     `json:"expertise"`
	ExpertiseLevel     any     `json:"expertise_level"`
	DecisionStyle      string  `json:"decision_style"`
	CommunicationStyle string  `json:"communication_style"`
	Traits             any     `json:"personality_traits"`
	Coalitions         any     `json:"preferred_coalitions"`
	Private            any     `json:"private_information"`
	Access             *access `json:"information_access"`
	Control            string  `json:"control" oneof:"ai,human"`
}

// access is what an actor knows besides what everybody knows.
type access struct {
	Public  any `json:"public"`
	Private any `json:"private"`
}

// readActors reads the actors that the scenario lists, in its order, or all actors if it lists none.
func (r *reader) readActors() {
	listed := r.script.Actors
	r.script.Actors = nil
	found := map[string]Actor{}
	docs := map[string]world.Document{}
	var order []string
	for _, file := range append(r.files.Match(r.path("actors/*.yaml")), r.files.Match(r.path("actors/*.yml"))...) {
		var f actor
		d, ok := r.yaml("actors/"+path.Base(file), &f)
		if !ok {
			continue
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".yaml"), ".yml")
		a := r.actor(d, f, stem)
		if _, twice := found[a.ShortName]; twice {
			r.fail(d, "short_name", "two files are for the actor %s", a.ShortName)
			continue
		}
		found[a.ShortName], docs[a.ShortName] = a, d
		order = append(order, a.ShortName)
	}
	if listed == nil && r.scenario != nil {
		if len(order) == 0 {
			r.fail(r.scenario, "actors", "is missing: the short names of the actors, each with a file actors/NAME.yaml")
			return
		}
		r.advise(r.scenario, "actors", "is missing, so every file in actors plays: write actors: [%s]", strings.Join(order, ", "))
		for _, short := range order {
			listed = append(listed, Actor{ShortName: short})
		}
	}
	r.cast(listed, found, docs, order)
}

// cast adds the listed actors to the script.
func (r *reader) cast(listed []Actor, found map[string]Actor, docs map[string]world.Document, order []string) {
	for i, l := range listed {
		a, ok := found[l.ShortName]
		if !ok && !r.broken {
			r.fail(r.scenario, at("actors", i), "there is no file actors/%s.yaml, and no file with short_name %s; there are files for %s", l.ShortName, l.ShortName, orNone(order))
		}
		if ok {
			r.script.Actors = append(r.script.Actors, a)
			r.actors = append(r.actors, docs[l.ShortName])
		}
	}
	for _, short := range order {
		if !slices.ContainsFunc(listed, func(a Actor) bool { return a.ShortName == short }) {
			r.advise(docs[short], "short_name", "%s is not listed under actors in %s and does not play", short, scenarioFile)
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (r *reader) actor(d world.Document, f actor, stem string) Actor {
	a := Actor{
		Name: strings.TrimSpace(f.Name), ShortName: strings.TrimSpace(value(f.ShortName, stem)),
		Model: f.Model,
		Role:  strings.TrimSpace(f.Role), Description: strings.TrimSpace(f.Description), System: strings.TrimSpace(f.System),
		Goals: r.texts(d, "goals", f.Goals), Constraints: r.texts(d, "constraints", f.Constraints),
		Expertise:          r.texts(d, "expertise", f.Expertise),
		ExpertiseLevel:     strings.Join(r.texts(d, "expertise_level", f.ExpertiseLevel), "; "),
		DecisionStyle:      strings.TrimSpace(f.DecisionStyle),
		CommunicationStyle: strings.TrimSpace(f.CommunicationStyle),
		Traits:             r.texts(d, "personality_traits", f.Traits),
		Coalitions:         r.texts(d, "preferred_coalitions", f.Coalitions),
		Private:            r.texts(d, "private_information", f.Private),
	}
	if f.ShortName == nil {
		r.advise(d, "short_name", "is missing, so the name of the file is used: write short_name: %s", stem)
	}
	if f.Control == "human" {
		r.fail(d, "control", "human: a person cannot play yet: write control: ai, or leave it out")
	}
	if f.Access != nil {
		a.Private = append(a.Private, r.texts(d, "information_access.private", f.Access.Private)...)
		switch public := f.Access.Public.(type) {
		case bool:
			a.Deaf = !public
		default:
			a.Public = r.texts(d, "information_access.public", public)
		}
	}
	return a
}
