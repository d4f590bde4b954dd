package planfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/llm"
	"parley/world"
)

// decodedPlan is a plan file, decoded and not yet resolved.
type decodedPlan struct {
	Kind      string                     `json:"kind" doc:"What is played. 'parley worlds' lists the kinds." required:"true" aliases:"world,game,type"`
	Seed      *uint64                    `json:"seed" doc:"Determines all chance in the run: the same plan with the same seed and the same replies has the same outcomes." default:"1" aliases:"random_seed"`
	Episodes  int                        `json:"episodes" doc:"How many episodes to play with the lineup. Not together with plan." default:"1" aliases:"games,count,repeat,runs" range:"1..2147483647"`
	Plan      *planSection               `json:"plan" doc:"Which episodes to play, if their number alone does not say it. Not together with episodes." default:"none"`
	Providers map[string]json.RawMessage `json:"providers" doc:"Accounts at model endpoints. The presets (PRESETS) are known without being listed; listed under its name, a preset keeps what is not given." default:"the presets" aliases:"endpoints,provider" free:"NAME"`
	Agents    map[string]world.Agent     `json:"agents" doc:"Who plays, by names of your choice. A text instead of the keys is the model: 'quiet: sim/small', or 'me: human' for a person." required:"true" aliases:"players,models,agent"`
	Lineup    map[string]string          `json:"lineup" doc:"Which agent sits in which seat. The seats are the kind's; a matrix fills the seats that are left out." default:"the only agent, in every seat" aliases:"seats,roles" filled:"true" free:"SEAT"`
	Train     *planner.Train             `json:"train" doc:"How the agents that are marked trainable are trained. See docs/how-to/train.md." default:"none"`
	Params    map[string]any             `json:"params" doc:"The parameters of the kind. 'parley init KIND' writes them all with their meaning." default:"the kind's" aliases:"parameters,settings,options,config"`
	Loaded    bool                       `json:"loaded" doc:"The params hold the content of the files that they name, as in a plan that 'parley export' wrote: no file is read for them. Remove it to read them again." default:"false"`
	*settings.Settings
	Out string `json:"out" doc:"The path of the run file, from the plan file's folder." default:"beside the plan file, named after it" aliases:"output,file" filled:"true"`
}

type planSection struct {
	Matrix *Matrix        `json:"matrix,omitempty" doc:"Every way to put agents into seats, with every setting of params." form:"record"`
	Until  *planner.Until `json:"until,omitempty" doc:"Plays more episodes until a score is known precisely enough. Together with matrix: in each of its cells."`
}

// resolver makes a Plan of a file, and reports what does not fit together.
type resolver struct {
	*checker
	file decodedPlan
	plan *Plan
	// kindKnown says that the kind is known, and seatsKnown that its seats are.
	kindKnown, seatsKnown bool
	// fileErrs are the errors in files that params name.
	fileErrs Errors
}

// resolve makes a Plan of a tree.
func resolve(rep *report, tree *yamltree.Node, kinds []world.Kind, sets []string, beside *Files) (*Plan, error) {
	generic := PlanShape(nil, mapShape("PARAM", anyShape()))
	type removal struct {
		key yamltree.Path
		at  yamltree.Position
	}
	var removed []removal
	for _, s := range sets {
		if key, at := override(rep, tree, generic, "--set", s); key != nil {
			removed = append(removed, removal{key, at})
		}
	}
	if tree.Form != yamltree.Mapping {
		rep.Add(tree.At, nil, "a plan is a mapping (key: value), found %s; `parley init KIND` writes one to begin with", rep.Found(tree))
		return nil, rep.Err()
	}
	r := &resolver{checker: &checker{report: rep, Tree: tree, Meant: map[string]bool{}}, plan: &Plan{}}
	params := mapShape("PARAM", anyShape())
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
		if kind := tree.Field("kind"); kind != nil && kind.Form == yamltree.Text && kind.Text == k.Name {
			if r.kindKnown {
				rep.Add(kind.At, yamltree.Path{"kind"}, "two kinds of this program are called %s: rename one of them", k.Name)
			}
			r.plan.Kind, r.kindKnown, params = k, true, paramsShape(k)
		}
	}
	if kind := tree.Field("kind"); !r.kindKnown && rep.Source.Recorded && kind != nil && kind.Form == yamltree.Text && kind.At.Set == "" {
		rep.Add(kind.At, yamltree.Path{"kind"}, "this program does not have the kind %s: use the program that recorded it (this one has %s)", kind.Text, cmp.Or(listed(names), "none"))
		return nil, rep.Err() // the rest cannot be checked
	}
	if kind := tree.Field("kind"); !r.kindKnown && kind != nil && strings.HasSuffix(kind.Text, ".py") {
		rep.Add(kind.At, yamltree.Path{"kind"}, "names a file of Python without a class: write %s:CLASS", kind.Text)
		return nil, rep.Err()
	}
	r.Root = PlanShape(names, params)
	if r.plan.Kind.ChoosesModels() || r.plan.Kind.Nests() {
		agents := r.Root.Key("agents")
		agents.Required, agents.Shape.Filled = false, false // the files may name all agents
	}
	values, _ := r.Value(tree, r.Root, nil)
	for _, k := range removed {
		r.removed(k.key, k.at)
	}
	if !r.kindKnown {
		r.Complain(yamltree.Path{"kind"}, "is not a kind of this program: it has %s", cmp.Or(listed(names), "none"))
	}
	r.file.Settings = settings.New(settings.Plan)
	if err := remarshal(values, &r.file); err != nil {
		rep.Add(yamltree.Position{}, nil, "cannot be decoded: %v", err)
		return nil, rep.Err()
	}
	if beside != nil {
		beside.kinds = kinds
	}
	r.resolveAll(beside)
	r.nest(kinds, beside)
	r.otherModels()
	if err := r.err(); err != nil {
		return nil, err
	}
	if !rep.Source.Recorded { // a recorded plan has no lines, and may be large
		r.plan.checker = r.checker
	}
	return r.plan, nil
}

// resolveAll resolves the parts one by one. Each part uses what it can of the others.
func (r *resolver) resolveAll(beside *Files) {
	p, f := r.plan, r.file
	p.Seed, p.Settings, p.Out, p.Loaded = 1, f.Settings, f.Out, f.Loaded
	if f.Seed != nil {
		p.Seed = *f.Seed
	}
	if p.Cache == "off" {
		p.Cache = ""
	}
	if r.Tree.Field("plan") == nil {
		p.Episodes = max(1, f.Episodes)
	}
	if !r.Source.Recorded {
		r.checkPaths(beside)
		defer func() { p.Outside = beside.Outside }()
	}
	r.providers()
	r.agents()
	r.batches()
	checkAgents(r.checker, p.Agents, p.Pace)
	r.params(beside)
	r.lineup()
	r.matrix()
	r.until()
	r.train()
	r.unseated()
	lineups := func() []map[string]string { return p.Matrix.Parts(p.Lineup, p.Seats) }
	checkPeopleSeats(r.checker, p.Agents, lineups)
	if r.kindKnown && r.seatsKnown {
		checkSeats(r.checker, p, lineups())
	}
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
		case a.Model == "" || a.Human() || a.Program != nil:
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
		if a.Program != nil {
			checkProgram(r.checker, a)
		}
		switch {
		case a.Program != nil && a.Model == "":
		case a.Human():
			checkPerson(r.checker, a, r.file.Agents)
		case a.Model != "":
			r.model(a.Model, here.To("model"))
		case a.Bot != "":
			r.bot(a, here)
		}
		for i, m := range a.Fallbacks {
			r.model(m, here.To("fallbacks").To(yamltree.Index(i)))
		}
		checkAgentProviders(r.checker, a, r.account)
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
	if r.kindKnown {
		bots := slices.Sorted(maps.Keys(r.plan.Kind.Bots()))
		switch {
		case slices.Contains(bots, a.Bot):
		case len(bots) == 0:
			r.Complain(here.To("bot"), "%s has no bots", r.plan.Kind.Name)
		default:
			r.Complain(here.To("bot"), "%s has no bot %s%s it has: %s", r.plan.Kind.Name, r.Quote(a.Bot), endHint(text.Suggest(a.Bot, bots)), listed(bots))
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
	r.Complain(here, "no provider %s%s known: %s; or list it under providers", r.Quote(account), endHint(text.Suggest(account, all)), listed(all))
}

// decodeParams decodes values, which the kind's shape has checked, over the kind's defaults. It also
// returns them as JSON with all defaults.
func decodeParams(k world.Kind, values map[string]any) (world.Params, json.RawMessage, error) {
	given, err := json.Marshal(values)
	if err != nil {
		return world.Params{}, nil, fmt.Errorf("params: %w", err)
	}
	params, err := k.Read(given)
	if err != nil {
		return params, nil, err
	}
	full, err := json.Marshal(params.Pointer())
	if err != nil {
		return params, nil, fmt.Errorf("params: %w", err)
	}
	resolved, err := canonical(full, values)
	return params, resolved, err
}

// canonical adds to the JSON of params what was given and omitempty left out: a field that was set to zero would otherwise
// get its default again.
func canonical(params json.RawMessage, given map[string]any) (json.RawMessage, error) {
	var resolved any
	if err := unmarshal(params, &resolved); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	return json.Marshal(mergeParams(given, resolved))
}

// loadFiles fills params with the content of the files that they name, and reports errors in those files.
func (r *resolver) loadFiles(beside *Files) bool {
	if r.Source.Recorded || r.file.Loaded {
		return true
	}
	if !beside.Foreign {
		beside.AllowTyped(r.Tree.Field("params"))
	}
	advice, err := r.plan.Kind.Load(r.plan.Params, beside)
	r.plan.Advice = append(r.plan.Advice, advice...)
	if len(beside.Refused) > 0 {
		r.reportRefused(beside, leaves(err))
		return false
	}
	if err == nil {
		full, err := json.Marshal(r.plan.Params.Pointer())
		if err == nil {
			r.plan.ParamsJSON, err = canonical(full, r.file.Params)
		}
		if err != nil {
			r.ComplainOfParams(r.plan.Kind.Name, err, yamltree.Path{"params"}, nil)
		}
		return err == nil
	}
	for _, one := range leaves(err) {
		if e, ok := one.(*Error); ok {
			r.fileErrs = append(r.fileErrs, e)
		} else {
			r.ComplainOfParams(r.plan.Kind.Name, one, yamltree.Path{"params"}, nil)
		}
	}
	return false
}

// joined is an error made of several, as by errors.Join.
type joined interface{ Unwrap() []error }

// leaves lists the errors that err joins.
func leaves(err error) []error {
	if _, ok := err.(*Error); ok {
		return []error{err}
	}
	if many, ok := err.(joined); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	return []error{err}
}

// err returns the errors in the plan and in the files that it names.
func (r *resolver) err() error {
	all, _ := r.report.Err().(Errors)
	if all = append(slices.Clip(all), r.fileErrs...); len(all) == 0 {
		return nil
	}
	return all
}

// seatModels puts the models that the files name into seats that the plan leaves empty, as agents
// with the names of the models.
func (r *resolver) seatModels() {
	if !r.plan.Kind.ChoosesModels() || !r.seatsKnown {
		return
	}
	var varied []string // seats of the matrix
	if p := r.file.Plan; p != nil && p.Matrix != nil {
		if len(p.Matrix.Seats) == 0 && len(p.Matrix.Agents) > 0 {
			return // the matrix fills every empty seat
		}
		varied = slices.AppendSeq(slices.Clone(p.Matrix.Seats), maps.Keys(p.Matrix.OwnSeats()))
	}
	models := r.plan.Kind.Models(r.plan.Params)
	lineup := maps.Clone(r.plan.Lineup)
	if lineup == nil {
		lineup = map[string]string{}
	}
	for _, seat := range r.emptySeats() {
		model := models[seat]
		if model == "" || slices.Contains(varied, seat) {
			continue
		}
		name := truncate(notInAgentName.ReplaceAllString(model, "_"), 64)
		lineup[seat] = name
		if _, there := r.plan.Agent(name); !there {
			r.model(model, yamltree.Path{"params"})
			r.plan.Agents = append(r.plan.Agents, world.Agent{Name: name, Model: model})
		}
	}
	r.plan.Lineup = lineup
	slices.SortFunc(r.plan.Agents, func(a, b world.Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.plan.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// notInAgentName matches the characters that isAgentName refuses.
var notInAgentName = regexp.MustCompile(`[^\pL\pN_.@+/-]`)

func truncate(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// checkPaths checks the files that are named outside params.
func (r *resolver) checkPaths(beside *Files) {
	for _, key := range []string{"prices", "cache", "out"} {
		n := r.Tree.Field(key)
		if n == nil || n.Form != yamltree.Text || n.Text == "" || key == "cache" && n.Text == "off" || n.At.Set != "" && !beside.Foreign {
			continue
		}
		if err := beside.Check(beside.Path(n.Text)); err != nil {
			r.Complain(yamltree.Path{key}, "%v", err)
		}
	}
	beside.Refused = nil // they have been reported
}

// reportRefused reports the files that params must not name, and not the errors that follow from that. A
// refused file that another file names is reported at its position in that file.
func (r *resolver) reportRefused(beside *Files, errs []error) {
	for _, one := range beside.Refused {
		reported := false
		for _, err := range errs {
			e, ok := err.(*Error)
			if ok && e.Line > 0 && strings.Contains(e.Problem, one.Problem) {
				r.fileErrs, reported = append(r.fileErrs, e), true
			}
		}
		if !reported {
			p, _ := beside.Naming(r.Tree.Field("params"), one.Path, yamltree.Path{"params"})
			if p == nil {
				p = yamltree.Path{"params"}
			}
			r.Complain(p, "%s", one.Problem)
		}
	}
}

// params decodes the params and gets the seats from the kind.
func (r *resolver) params(beside *Files) {
	if !r.kindKnown {
		return
	}
	p := r.plan
	var err error
	r.trainParams()
	p.Params, p.ParamsJSON, err = decodeParams(p.Kind, r.file.Params)
	if err != nil {
		r.ComplainOfParams(r.plan.Kind.Name, err, yamltree.Path{"params"}, nil)
		return
	}
	loaded := r.loadFiles(beside)
	seats, err := seatsOf(p.Kind, p.Params)
	if err != nil && loaded {
		if of, refused := r.firstCell(); of != nil && refused == nil {
			seats, err = of, nil
		}
	}
	for _, one := range leaves(err) {
		if one != nil && (loaded || !errors.Is(one, world.ErrUnread)) { // unread files were reported
			r.ComplainOfParams(r.plan.Kind.Name, one, yamltree.Path{"params"}, nil)
		}
	}
	if loaded && err == nil {
		p.Seats, r.seatsKnown = seats, true
	}
}

// firstCell returns the seats of the first cell of a matrix, or nil if there is none. Only cells are played, so
// the params of the plan may lack what every cell sets; each cell is checked with the matrix.
func (r *resolver) firstCell() ([]string, error) {
	if r.file.Plan == nil || r.file.Plan.Matrix == nil || r.plan.Kind.External() {
		return nil, nil
	}
	m, change := r.file.Plan.Matrix, map[string]any{}
	for name, values := range m.Params {
		if len(values) > 0 {
			change[name] = values[0]
		}
	}
	params, _, err := r.plan.vary(Variant{Variation: m.Variations[m.VariationNames()[0]], Change: change})
	if err != nil {
		return nil, err
	}
	return seatsOf(r.plan.Kind, params)
}

// seatsOf returns the seats for params. Each must have its own name.
func seatsOf(k world.Kind, params world.Params) ([]string, error) {
	seats, err := k.Seats(params)
	for i, seat := range seats {
		switch {
		case err != nil:
		case seat == "":
			err = fmt.Errorf("the kind makes %d seats of these params, and seat %d has no name: correct its method Seats", len(seats), i+1)
		case slices.Contains(seats[:i], seat):
			err = fmt.Errorf("the kind makes the seat %s twice of these params: correct its method Seats", yamltree.Quote(seat))
		}
	}
	return seats, err
}

// lineup checks which agent sits in which seat.
func (r *resolver) lineup() {
	p := r.plan
	p.Lineup = r.file.Lineup
	matrix := r.file.Plan != nil && r.file.Plan.Matrix.FillsSeats()
	if r.Tree.Field("lineup") == nil && !matrix && (len(p.Agents) > 0 || !p.Kind.ChoosesModels() && !p.Kind.Nests()) {
		r.seatAll()
		return
	}
	for _, seat := range slices.Sorted(maps.Keys(p.Lineup)) {
		here := yamltree.Path{"lineup", seat}
		if r.seatKnown(seat) {
			r.agentKnown(p.Lineup[seat], here)
		} else {
			r.ComplainOfKey(here, "%s has no such seat%s", p.Kind.Name, r.seatsLike(seat))
		}
	}
	r.seatModels()
	if empty := r.emptySeats(); len(empty) > 0 && !matrix {
		r.Complain(yamltree.Path{"lineup"}, "nobody sits in %s: add `%s: AGENT` for each; agents: %s", strings.Join(empty, ", "), empty[0], listed(r.agentNames()))
	}
}

// seatAll fills a missing lineup: the only agent sits in every seat.
func (r *resolver) seatAll() {
	names := r.agentNames()
	if mine := slices.DeleteFunc(slices.Clone(names), r.bySet); len(mine) == 1 {
		names = mine // an agent that an override adds is not a second one: see unseated
	}
	if len(names) != 1 {
		if len(r.plan.Seats) > 0 && len(names) > 0 {
			r.Complain(yamltree.Path{"lineup"}, "is missing: with several agents, say who sits where; the seats are %s", listed(r.plan.Seats))
		}
		return
	}
	r.plan.Lineup = map[string]string{}
	for _, seat := range r.plan.Seats {
		r.plan.Lineup[seat] = names[0]
	}
}

// emptySeats lists the seats that the lineup leaves out. A seat whose entry has an error is not empty.
func (r *resolver) emptySeats() []string {
	var empty []string
	for _, seat := range r.plan.Seats {
		if r.Tree.Field("lineup").Field(seat) == nil && r.plan.Lineup[seat] == "" {
			empty = append(empty, seat)
		}
	}
	return empty
}

func (r *resolver) agentNames() []string {
	names := make([]string, len(r.plan.Agents))
	for i, a := range r.plan.Agents {
		names[i] = a.Name
	}
	return names
}

func (r *resolver) agentKnown(name string, here yamltree.Path) bool {
	// An agent with wrong keys is still known. If there are no agents, that was reported.
	names := r.agentNames()
	if len(names) == 0 || r.Tree.Field("agents").Field(name) != nil {
		return true
	}
	r.Complain(here, "no agent is named %s%s agents: %s", r.Quote(name), endHint(text.Suggest(name, names)), listed(names))
	return false
}

// seatKnown reports whether the kind has a seat. It is true if the seats are not known.
func (r *resolver) seatKnown(seat string) bool {
	return !r.seatsKnown || slices.Contains(r.plan.Seats, seat)
}

// seatsLike lists the seats for an error about one that does not exist, and suggests the nearest.
func (r *resolver) seatsLike(seat string) string {
	return endHint(text.Suggest(seat, r.plan.Seats)) + " its seats: " + listed(r.plan.Seats)
}

// unseated removes the agents without a seat, and reports them: a misspelled name in an override adds such an agent, and the
// one that was meant would play unchanged. An agent of the file may be a template for others (&base) or lose its seat by an
// override, and a recorded plan may hold agents of other episodes.
func (r *resolver) unseated() {
	if !r.seatsKnown || slices.ContainsFunc(r.Errs, func(e *Error) bool {
		return strings.HasPrefix(e.Key, "lineup") || strings.HasPrefix(e.Key, "plan")
	}) {
		return // the lineup is not known
	}
	seated := map[string]bool{}
	for _, name := range r.plan.Lineup {
		seated[name] = true
	}
	if r.plan.Matrix != nil {
		for _, name := range r.plan.Matrix.AgentNames() {
			seated[name] = true
		}
	}
	addFallbacks(seated, r.plan.Agents)
	moved := r.Tree.Field("lineup").Overridden() || r.Tree.Field("plan").Overridden()
	names := slices.Sorted(maps.Keys(seated))
	others := ""
	if len(names) > 0 {
		others = "; agents with a seat: " + listed(names)
	}
	all := r.plan.Agents
	r.plan.Agents = slices.DeleteFunc(slices.Clone(all), func(a world.Agent) bool { return !seated[a.Name] })
	for _, a := range all {
		name := a.Name
		if seated[name] || !r.bySet(name) && (moved || r.Source.Recorded || r.Tree.Field("agents").Field(name).Anchor) {
			continue
		}
		here := yamltree.Path{"agents", name}
		// Other errors in an agent that nobody wanted do not matter.
		r.Errs = slices.DeleteFunc(r.Errs, func(e *Error) bool {
			return r.bySet(name) && (e.Key == here.String() || strings.HasPrefix(e.Key, here.String()+"."))
		})
		r.ComplainOfKey(here, "sits in no seat%s give it one in lineup, or leave it out%s", endHint(text.Suggest(name, names)), others)
	}
}

// bySet reports whether only an override names an agent.
func (r *resolver) bySet(name string) bool {
	n := r.Tree.Field("agents").Field(name)
	return n != nil && n.Key.Set != ""
}
