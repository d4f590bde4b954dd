package planfile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/llm"
	"parley/world"
)

// file is a plan file, decoded and not yet resolved.
type file struct {
	Kind      string                     `json:"kind"`
	Seed      *uint64                    `json:"seed"`
	Episodes  int                        `json:"episodes"`
	Plan      *planFile                  `json:"plan"`
	Providers map[string]json.RawMessage `json:"providers"`
	Agents    map[string]world.Agent     `json:"agents"`
	Lineup    map[string]string          `json:"lineup"`
	Params    map[string]any             `json:"params"`
	Limits    limits                     `json:"limits"`
	Budget    llm.Money                  `json:"budget"`
	Episode   llm.Money                  `json:"episode_budget"`
	Cache     string                     `json:"cache"`
	Pace      string                     `json:"pace"`
	Batch     Batch                      `json:"batch"`
	Retry     retry                      `json:"retry"`
	Prices    string                     `json:"prices"`
	Out       string                     `json:"out"`
}

type planFile struct {
	Matrix *Matrix        `json:"matrix,omitempty"`
	Until  *planner.Until `json:"until,omitempty"`
}

type retry struct {
	Unreachable *time.Duration `json:"unreachable"`
}

type limits struct {
	Concurrency int `json:"concurrency,omitempty"`
	Live        int `json:"live,omitempty"`
}

// resolver makes a Plan of a file, and reports what does not fit together.
type resolver struct {
	*Checker
	file file
	plan *Plan
	// known: the kind is known. seated: its seats are known.
	known, seated bool
	// beside are the errors in files that params name.
	beside Errors
}

// resolve makes a Plan of a tree.
func resolve(rep *Report, tree *yamltree.Node, kinds []world.Kind, sets []string, beside *Files) (*Plan, error) {
	generic := PlanShape(nil, schemaMap("PARAM", schemaAny()))
	for _, s := range sets {
		override(rep, tree, generic, s)
	}
	if tree.Form != yamltree.Mapping {
		rep.Add(tree.At, nil, "a plan is a mapping (key: value), found %s; `parley init KIND` writes one to begin with", rep.Found(tree))
		return nil, rep.Err()
	}
	r := &resolver{Checker: &Checker{Report: rep, Tree: tree, Meant: map[string]bool{}}, plan: &Plan{}}
	params := schemaMap("PARAM", schemaAny())
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
		if kind := tree.Field("kind"); kind != nil && kind.Form == yamltree.Text && kind.Text == k.Name {
			if r.known {
				rep.Add(kind.At, yamltree.Path{"kind"}, "two kinds of this program are called %s: rename one of them", k.Name)
			}
			r.plan.Kind, r.known, params = k, true, paramsShape(k)
		}
	}
	if kind := tree.Field("kind"); !r.known && rep.Source.Recorded && kind != nil && kind.Form == yamltree.Text && kind.At.Set == "" {
		rep.Add(kind.At, yamltree.Path{"kind"}, "this program does not have the kind %s: use the program that recorded it (this one has %s)", kind.Text, cmp.Or(documentListed(names), "none"))
		return nil, rep.Err() // the rest cannot be checked
	}
	if kind := tree.Field("kind"); !r.known && kind != nil && strings.HasSuffix(kind.Text, ".py") {
		rep.Add(kind.At, yamltree.Path{"kind"}, "names a file of Python without a class: write %s:CLASS", kind.Text)
		return nil, rep.Err()
	}
	r.Root = PlanShape(names, params)
	if r.plan.Kind.ChoosesModels() {
		agents := r.Root.Key("agents")
		agents.Required, agents.Shape.MinLen = false, 0 // the files may name all agents
	}
	values, _ := r.Value(tree, r.Root, nil)
	if !r.known {
		r.Complain(yamltree.Path{"kind"}, "is not a kind of this program: it has %s", cmp.Or(documentListed(names), "none"))
	}
	if err := remarshal(values, &r.file); err != nil {
		rep.Add(yamltree.Position{}, nil, "cannot be decoded: %v", err)
		return nil, rep.Err()
	}
	r.all(beside)
	if err := r.err(); err != nil {
		return nil, err
	}
	if !rep.Source.Recorded { // a recorded plan has no lines, and may be large
		r.plan.checker = r.Checker
	}
	return r.plan, nil
}

// all resolves the parts one by one. Each part uses what it can of the others.
func (r *resolver) all(beside *Files) {
	p, f := r.plan, r.file
	p.Seed, p.Budget, p.Pace, p.Prices, p.Out = 1, f.Budget, "free", f.Prices, f.Out
	p.EpisodeBudget = f.Episode
	p.Concurrency, p.Live = f.Limits.Concurrency, f.Limits.Live
	if f.Seed != nil {
		p.Seed = *f.Seed
	}
	if f.Pace != "" {
		p.Pace = f.Pace
	}
	p.Batch = f.Batch
	p.Unreachable = DefaultUnreachable
	if d := f.Retry.Unreachable; d != nil {
		p.Unreachable = *d
	}
	if f.Cache != "off" {
		p.Cache = f.Cache
	}
	if r.Tree.Field("plan") == nil {
		p.Episodes = max(1, f.Episodes)
	}
	if !r.Source.Recorded {
		r.bound(beside)
		defer func() { p.Outside = beside.Outside }()
	}
	accounts := readAccounts(r.Checker, f.Providers)
	p.Providers, p.Places, p.Advice = accounts.Providers, accounts.Places, accounts.Advice
	r.agents()
	r.batches()
	checkAll(r.Checker, p.Agents, p.Pace)
	r.params(beside)
	r.lineup()
	r.matrix()
	r.until()
	r.unseated()
	checkSeats(r.Checker, p.Agents, func() []map[string]string { return p.Matrix.Parts(p.Lineup, p.Seats) })
}

// batches refuses a plan that wants batches if none of its models has a batch API: the calls would
// be made live, at the full price, without notice.
func (r *resolver) batches() {
	if r.plan.Pace != "wave" || r.plan.Batch.Route != "batch" {
		return
	}
	var without []string
	for _, a := range r.plan.Agents {
		name, _ := llm.SplitModel(a.Model)
		p, known := r.account(name)
		switch who := name + p.WhyNoBatch(); {
		case a.Model == "" || a.Human():
		case !known || p.Batch != nil:
			return
		case !slices.Contains(without, who):
			without = append(without, who)
		}
	}
	if len(without) > 0 {
		r.Complain(yamltree.Path{"batch", "route"}, "no provider of this plan has a batch API (%s): use route: auto or live, which ask at full price, or say batch: {} in a provider that has one", strings.Join(without, ", "))
	}
}

func (r *resolver) agents() {
	for _, name := range slices.Sorted(maps.Keys(r.file.Agents)) {
		a := r.file.Agents[name]
		a.Name = name
		here := yamltree.Path{"agents", name}
		if !isAgentName(name) {
			r.ComplainOfKey(here, "the name of an agent is one word of letters, digits and _ . @ + / -, at most 64 long")
		}
		switch {
		case a.Human():
			checkPerson(r.Checker, a, r.file.Agents)
		case a.Model != "":
			r.model(a.Model, here.To("model"))
		case a.Bot != "":
			r.bot(a, here)
		}
		for i, m := range a.Fallbacks {
			r.model(m, here.To("fallbacks").To(yamltree.Index(i)))
		}
		accountAgent(r.Checker, a, r.account)
		r.tags(a.Tags, here.To("tags"))
		r.plan.Agents = append(r.plan.Agents, a)
	}
	slices.SortFunc(r.plan.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// account returns a provider of the plan, or a preset.
func (r *resolver) account(name string) (provider.Provider, bool) {
	if i := slices.IndexFunc(r.plan.Providers, func(p provider.Provider) bool { return p.Name == name }); i >= 0 {
		return r.plan.Providers[i], true
	}
	return provider.Lookup(name)
}

// bot checks an agent without a model: the kind must have the bot, and settings of models are refused.
func (r *resolver) bot(a world.Agent, here yamltree.Path) {
	if r.known {
		bots := slices.Sorted(maps.Keys(r.plan.Kind.Bots()))
		switch {
		case slices.Contains(bots, a.Bot):
		case len(bots) == 0:
			r.Complain(here.To("bot"), "%s has no bots", r.plan.Kind.Name)
		default:
			r.Complain(here.To("bot"), "%s has no bot %s%s it has: %s", r.plan.Kind.Name, r.Quote(a.Bot), schemaHint(text.Suggest(a.Bot, bots)), documentListed(bots))
		}
	}
	for _, f := range r.Tree.Find(here).Fields {
		if f.Name != "bot" && f.Name != "trainable" && f.Name != "tags" {
			r.ComplainOfKey(here.To(f.Name), "a bot has no model behind it: leave %s out", f.Name)
		}
	}
}

// model checks provider/model, and adds the preset that it names.
func (r *resolver) model(name string, here yamltree.Path) {
	account, model := llm.SplitModel(name)
	if account == "" || model == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7F }) {
		r.Complain(here, "wants provider/model, as sim/small, found %s", r.Quote(name))
		return
	}
	if _, listed := r.file.Providers[account]; listed || slices.ContainsFunc(r.plan.Providers, func(p provider.Provider) bool { return p.Name == account }) {
		return
	}
	if p, ok := provider.Lookup(account); ok {
		r.plan.Providers = append(r.plan.Providers, p)
		r.plan.Places[account] = r.Where(here)
		return
	}
	if n := r.Tree.Field("providers"); n.Field(account) != nil {
		return // it is listed, and its error was reported
	}
	all := slices.Sorted(maps.Keys(r.file.Providers))
	all = append(all, slices.DeleteFunc(provider.PresetNames(), func(name string) bool { return slices.Contains(all, name) })...)
	r.Complain(here, "no provider %s%s known: %s; or list it under providers", r.Quote(account), schemaHint(text.Suggest(account, all)), documentListed(all))
}
