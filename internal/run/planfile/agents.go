package planfile

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parley/internal/ask/provider"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/program"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// checkPerson checks the keys of an agent that is a person: settings of models are refused. all are the agents of the file.
func checkPerson(r *checker, a world.Agent, all map[string]world.Agent) {
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
		r.Complain(at, "no agent is named %s%s agents: %s", r.Quote(a.Fallback), endHint(text.Suggest(a.Fallback, names)), listed(names))
	case f.Model == "" || f.Human() || f.Program != nil:
		r.Complain(at, "%s has no model: name an agent with one, or leave fallback out, and a call without an answer fails", r.Quote(a.Fallback))
	}
}

// checkProgram checks the keys of an agent that is a program. Only some settings of models hold for it: what it asks its model is its own.
func checkProgram(r *checker, a world.Agent) {
	here := yamltree.Path{"agents", a.Name}
	at := here.To("program")
	for _, f := range r.Tree.Find(here).Fields {
		switch {
		case a.Bot != "" && f.Name == "bot", a.Human() && f.Name == "model":
			r.ComplainOfKey(here.To(f.Name), "a program answers for this agent: leave %s out, or program", f.Name)
		case !slices.Contains([]string{"model", "program", "system", "tags", "trainable", "bot"}, f.Name):
			r.ComplainOfKey(here.To(f.Name), "a program decides itself how it asks its model: leave %s out; a program can have model, system, tags and trainable", f.Name)
		}
	}
	preset, known := program.Find(a.Program.Preset)
	switch names := program.Names(); {
	case !known:
		r.Complain(at.To("preset"), "no program is named %s%s known: %s; or give its command", r.Quote(a.Program.Preset), endHint(text.Suggest(a.Program.Preset, names)), listed(names))
	case a.Model == "" && preset.NeedsModel:
		r.Complain(at, "%s asks a model: name it, as model: sim/small", a.Program.Preset)
	case a.Model != "" && preset.NoModel:
		r.ComplainOfKey(here.To("model"), "%s asks no model: leave it out", a.Program.Preset)
	}
	if c := a.Program.Command; len(c) > 0 && strings.ContainsRune(c[0], '/') && !path.IsAbs(c[0]) && !filepath.IsAbs(c[0]) && !strings.HasPrefix(c[0], "{") {
		r.Complain(at.To("command"), "%s is a relative path, and a program starts in a folder of its own: give its whole path", r.Quote(c[0]))
	}
	if known && program.Unasked(*a.Program) {
		r.Complain(at.To("command"), "has no {prompt}, and with input: argument the program gets its question in place of that: add it, or give the question with input: stdin or input: file")
	}
	for name := range a.Program.Files {
		if !part.LocalPath(name) {
			r.ComplainOfKey(at.To("files").To(name), "want a path below the program's HOME, with slashes, as .config/tool.json")
		}
	}
	for name := range a.Program.Env {
		if !isEnvironment(name) {
			r.ComplainOfKey(at.To("env").To(name), "is no name of an environment variable that can be set: want letters, digits and _, and neither PATH nor HOME")
		}
	}
}

// isEnvironment reports whether a plan can set an environment variable.
func isEnvironment(name string) bool {
	return isName(name, "") && name != "PATH" && name != "HOME" && name != program.Marker
}

// checkSeats refuses agents that are no programs in seats that want programs.
func checkSeats(r *checker, plan *Plan, lineups []map[string]string) {
	starts := plan.Kind.Starts(plan.Params)
	for _, seat := range starts.Seats {
		for _, lineup := range lineups {
			a, ok := plan.Agent(lineup[seat])
			if at := (yamltree.Path{"agents", a.Name, "program"}); ok && len(starts.Unsolved) > 0 && a.Program != nil && program.Own(*a.Program) == program.Oracle && !r.Reported(at) {
				r.Complain(at, "oracle runs the solution that work has, and %s has none: add one, or leave out %s or the agent", starts.Unsolved[0], starts.Unsolved[0])
			}
			if at := (yamltree.Path{"agents", a.Name}); ok && a.Program == nil && !r.Reported(at) {
				r.Complain(at, "sits in the seat %s of %s, which wants a program: a model alone cannot work on files. Add one, as program: claude-code; known: %s; or program: {command: [...]}", seat, plan.Kind.Name, listed(program.Names()))
			}
		}
	}
}

// checkAgents refuses what agents cannot do: people cannot be asked in waves, and only people have a deadline.
func checkAgents(r *checker, agents []world.Agent, pace string) {
	for _, a := range agents {
		here := yamltree.Path{"agents", a.Name}
		switch {
		case a.Program != nil && pace == "wave":
			r.Complain(here.To("program"), "a program cannot be asked in waves: use pace: free")
		case a.Human() && pace == "wave":
			r.Complain(here.To("model"), "a person cannot be asked in waves: every episode would wait for each answer; use pace: free")
		case !a.Human() && a.Deadline > 0:
			r.ComplainOfKey(here.To("deadline"), "is for people (model: human): the timeout of a provider limits the time of a model")
		case !a.Human() && a.Fallback != "":
			r.ComplainOfKey(here.To("fallback"), "is for people (model: human): fallbacks lists models to ask if this one cannot answer")
		}
	}
}

// checkPeopleSeats refuses a matrix that puts two people into a seat, one after the other: whoever sits there sees what the
// seat was asked in all episodes.
func checkPeopleSeats(r *checker, agents []world.Agent, lineups func() []map[string]string) {
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

// checkAgentProviders reports the settings of an agent that the providers of its models do not have: its service tier, or its cached
// content. find returns a provider of the plan.
func checkAgentProviders(c *checker, a world.Agent, find func(name string) (provider.Provider, bool)) {
	if a.Model == "" || a.Human() {
		return
	}
	here := yamltree.Path{"agents", a.Name}
	if a.CachedContent != "" && !cacheName.MatchString(a.CachedContent) {
		c.Complain(here.To("cached_content"), "must be the name that Google gave the cache: cachedContents/ID, or projects/PROJECT/locations/REGION/cachedContents/ID on Vertex AI")
	}
	if a.CachedContent != "" && len(a.Fallbacks) > 0 {
		c.Complain(here.To("cached_content"), "belongs to one model: leave fallbacks out")
	}
	for _, m := range append([]string{a.Model}, a.Fallbacks...) {
		name, _ := llm.SplitModel(m)
		p, known := find(name)
		if known && !(hasTier(c, a, name, p, here) && hasCachedContent(c, a, name, p, here)) {
			return
		}
	}
}

var cacheName = regexp.MustCompile(`^(projects/[^/\s]+/locations/[^/\s]+/)?cachedContents/[A-Za-z0-9_-]{1,100}$`)

// hasTier reports whether p has the service tier of a.
func hasTier(c *checker, a world.Agent, name string, p provider.Provider, here yamltree.Path) bool {
	tiers, ok := p.Tiers()
	switch {
	case a.Tier == "" || !ok || slices.Contains(tiers, a.Tier):
		return true
	case len(tiers) == 0:
		c.Complain(here.To("tier"), "%s has no service tiers: leave tier out", name)
	default:
		c.Complain(here.To("tier"), "%s has no service tier %s%s it has: %s", name, c.Quote(a.Tier), endHint(text.Suggest(a.Tier, tiers)), listed(tiers))
	}
	return false
}

// hasCachedContent reports whether p can have the cached content of a.
func hasCachedContent(c *checker, a world.Agent, name string, p provider.Provider, here yamltree.Path) bool {
	if a.CachedContent == "" || p.Dialect == "gemini" {
		return true
	}
	c.Complain(here.To("cached_content"), "is Gemini's, and %s speaks the dialect %s: leave it out", name, p.Dialect)
	return false
}

// isAgentName reports whether a name works in labels, in keys of overrides and on command lines.
func isAgentName(name string) bool { return isName(name, ".@+/-") }

// isTagName reports whether a name works in --by and as the head of a column.
func isTagName(name string) bool { return isName(name, "-") }

// isName reports whether a name consists of at most 64 letters, digits and _, or of others after the first. A regular expression that
// counts to 64 would take several megabytes and a tenth of the time in which the program starts.
func isName(name, others string) bool {
	n := 0
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && c != '_' && (n == 0 || !strings.ContainsRune(others, c)) {
			return false
		}
		n++
	}
	return n > 0 && n <= 64
}
