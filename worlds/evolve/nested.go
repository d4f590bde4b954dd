package evolve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/worlds/evolve/genome"
)

// Split says how many deals of the nested plan there are for what. They follow each other: training has the first ones.
type Split struct {
	Train      int `json:"train" doc:"How many deals texts are tried on." range:"2..100000"`
	Validation int `json:"validation" doc:"How many more the winner is chosen by among the finalists. 0: it is the fittest." range:"0..100000"`
	Test       int `json:"test" doc:"How many more the winner is measured by in the end. Evolution never sees them." range:"2..100000"`
}

// Nested returns the plan whose texts evolve.
func (definition) Nested(p *Params) *world.NestedPlan { return p.Nested }

// PlanNested returns the plan of one evolution of texts of another plan.
func (definition) PlanNested(given *Params, nested world.Kind, cell world.Spec, seed uint64) (world.Stages, error) {
	if given.Episode != nil {
		return world.List(cell), nil
	}
	return newPlan(given, &nested, cell, seed)
}

// loadNested reads the plan whose texts evolve.
func (p *Params) loadNested(files world.Files) error {
	c := world.ParamErrors{Kind: "evolve"}
	reader, ok := files.(part.PlanReader)
	if !ok {
		c.Addf("play", "plans cannot be read here")
		return c.Err()
	}
	var err error
	if p.Nested, err = reader.Plan(p.Play); err != nil && !strings.Contains(err.Error(), "\n") { // otherwise it shows its position
		c.Addf("play", "%w", err)
		return c.Err()
	}
	return err
}

// checkNested checks the params of an evolution of texts of another plan.
func (p *Params) checkNested(c *paramErrors) {
	s := p.Split
	if need := s.Train + s.Validation + s.Test; p.Nested != nil && p.Nested.Tasks > 0 && need > p.Nested.Tasks {
		c.Addf("split", "%d problems are wanted, and %s has only %d: the test would have some that were seen before", need, p.Play, p.Nested.Tasks)
	}
	c.addIf(p.Fitness.By != "accuracy", "fitness.by", "with play, texts are judged by maximize or minimize alone: leave fitness out")
	c.addIf(len(p.Seeds) > 0 && len(p.Change) > 1, "seeds", "are texts to begin with instead of one, and change names %d", len(p.Change))
	c.addIf(p.Checker.Judged(), "checker.type", "with play, nothing is checked: leave checker out")
	c.addIf((p.Maximize == "") == (p.Minimize == ""), "maximize", "want one of maximize and minimize, with the name of a measure")
	c.addIf(len(p.Phrases) == 0 && !p.breeds(), "mutation", "nothing new can arise: give reflect or rewrite a weight, for a model in the seat %s, or list phrases", breederSeat)
	if p.Nested == nil || p.Nested.File != p.Play {
		c.Addf("play", "%q %w: a matrix cannot vary it", p.Play, world.ErrUnread)
		return
	}
	texts := nestedTexts(p.Nested)
	c.addIf(len(p.Change) == 0, "change", "is missing; want the paths of texts, as %s", nearestPaths("", pathsOf(texts)))
	known := len(p.Change) > 0
	for i, path := range p.Change {
		at := fmt.Sprintf("change[%d]", i)
		named := slices.DeleteFunc(slices.Clone(texts), func(t planText) bool { return !names(path, t.path) })
		is := func(f func(t planText) bool) *planText {
			if k := slices.IndexFunc(named, f); k >= 0 {
				return &named[k]
			}
			return nil
		}
		if len(named) == 0 {
			known = false
			c.Addf(at, "%s has no text at %.80q; the nearest are %s", p.Play, path, nearestPaths(path, pathsOf(texts)))
		} else if t := is(func(t planText) bool { return t.run != "" }); t != nil {
			c.Addf(at, "%q is run (%s), and a text that a model wrote must not be", t.path, t.run)
		} else if t := is(func(t planText) bool { return t.text != named[0].text }); t != nil {
			c.Addf(at, "the texts at %q and %q differ, and one is to take their place: make them equal, or list them one by one", named[0].path, t.path)
		} else if t := is(func(t planText) bool {
			return slices.ContainsFunc(p.Change[:i], func(other string) bool { return names(other, t.path) })
		}); t != nil {
			c.Addf(at, "%q is listed twice", t.path)
		}
	}
	p.checkMeasure(c, known)
	_, seats := definition{}.OtherModels(p)
	c.addIf(known && len(p.Transfer) > 0 && len(seats) == 0, "transfer", "no agent is changed: say whose model is another with seat")
}

// checkMeasure checks what is to be maximized, and for whom. Without known paths nobody knows whose texts change.
func (p *Params) checkMeasure(c *paramErrors, known bool) {
	key, name := "maximize", p.Maximize
	if p.Minimize != "" {
		key, name = "minimize", p.Minimize
	}
	all := p.Nested.Measures
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	at := slices.Index(names, name)
	switch {
	case name == "":
	case at < 0 && len(all) > 0:
		c.Addf(key, "%s has no measure %.80q; it has %s", p.Play, name, strings.Join(names, ", "))
	case at < 0:
	case len(all[at].Seats) == 0:
		c.addIf(p.Seat != "", "seat", "%s is a measure of the whole episode: leave the seat out", name)
	case p.Seat != "":
		c.addIf(!slices.Contains(all[at].Seats, p.Seat), "seat", "%.80q has no %s; want one of %s", p.Seat, name, strings.Join(all[at].Seats, ", "))
	default:
		c.addIf(known && len(p.cells()) == 0, key, "%s is a measure of seats, and no agent that change names sits in one of them: say whose with seat, one of %s", name, strings.Join(all[at].Seats, ", "))
	}
}

// cells lists the cells in which candidates are tried: those in which somebody has the measure.
func (p *Params) cells() (all []world.Spec) {
	for _, cell := range p.Nested.Cells {
		if len(p.measure().Seats) == 0 || len(p.seatsIn(cell)) > 0 {
			all = append(all, cell)
		}
	}
	return all
}

// measure returns the measure that is maximized or minimized.
func (p *Params) measure() world.Measure {
	name := cmp.Or(p.Maximize, p.Minimize)
	i := slices.IndexFunc(p.Nested.Measures, func(m world.Measure) bool { return m.Name == name })
	if i < 0 {
		return world.Measure{Name: name, Bounds: world.Anything()} // the kind declares none
	}
	return p.Nested.Measures[i]
}

// seatsIn lists the seats whose measure counts: the one that is given, or those of the agents that are changed. Nil: it is a measure of the
// whole episode.
func (p *Params) seatsIn(cell world.Spec) (seats []string) {
	m := p.measure()
	switch {
	case p.Seat != "":
		return []string{p.Seat}
	case len(m.Seats) == 0:
		return nil
	}
	for _, seat := range m.Seats {
		if slices.Contains(p.Change, systemPath(cell.Lineup[seat])) {
			seats = append(seats, seat)
		}
	}
	return seats
}

// OtherModels returns the models on which the winner is tried too.
func (definition) OtherModels(p *Params) (models, seats []string) {
	if p.Nested == nil {
		return p.Transfer, solverSeats(p.Solvers)
	}
	for _, cell := range p.Nested.Cells {
		seats = append(seats, p.changedSeats(cell)...)
	}
	return p.Transfer, seats
}

// changedSeats lists the seats whose agents get other models: those of the agents that are changed, or else the seat that counts.
func (p *Params) changedSeats(cell world.Spec) (seats []string) {
	for _, seat := range slices.Sorted(maps.Keys(cell.Lineup)) {
		if slices.Contains(p.Change, systemPath(cell.Lineup[seat])) {
			seats = append(seats, seat)
		}
	}
	if len(seats) == 0 && p.Seat != "" {
		return []string{p.Seat}
	}
	return seats
}

// withModel returns a lineup with another model in some seats.
func withModel(lineup map[string]string, seats []string, model string) map[string]string {
	if model == "" {
		return lineup
	}
	lineup = maps.Clone(lineup)
	for _, seat := range seats {
		lineup[seat] = world.AgentWith(lineup[seat], model)
	}
	return lineup
}

// planText is a text of a plan.
type planText struct {
	path, text string
	run        string // the key that says that it is run; empty: it is not
}

// names reports whether a path of change names the text at a path: [*] stands for every item of a list.
func names(change, path string) bool {
	before, after, all := strings.Cut(change, "[*]")
	if !all {
		return change == path
	}
	rest, ok := strings.CutPrefix(path, before+"[")
	for i, open := 0, 1; ok && i < len(rest); i++ { // the name of an item may have brackets
		switch rest[i] {
		case '[':
			open++
		case ']':
			open--
		}
		if open == 0 {
			return names(after, rest[i+1:])
		}
	}
	return false
}

func pathsOf(texts []planText) (paths []string) {
	for _, t := range texts {
		if t.run == "" {
			paths = append(paths, t.path)
		}
	}
	return paths
}

// nearestPaths lists a few paths, the most similar to a wrong one first.
func nearestPaths(wrong string, all []string) string {
	var near []string
	for len(near) < 4 && len(all) > 0 {
		i := max(0, slices.Index(all, part.Nearest(wrong, all)))
		near = append(near, all[i])
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	return strings.Join(near, ", ")
}

func systemPath(agent string) string { return "agents." + agent + ".system" }

// nestedTexts lists the texts of a plan that evolution can change: system prompts, and all texts in params.
func nestedTexts(of *world.NestedPlan) (all []planText) {
	for _, a := range of.Agents {
		if a.Model != "" && !a.Human() || a.Program != nil {
			all = append(all, planText{path: systemPath(a.Name), text: a.System})
		}
	}
	if len(of.Cells) > 0 {
		var params any
		if json.Unmarshal(of.Cells[0].Params, &params) == nil {
			_ = eachText(params, "params", "", func(t planText) (string, bool) { all = append(all, t); return "", false })
		}
	}
	return all
}

// eachText calls f with each text in JSON, and replaces it if f says so. An item of a list has its name, path or id as its index if it has one,
// and a file is the text at its path.
func eachText(v any, path, run string, f func(planText) (string, bool)) any {
	switch v := v.(type) {
	case string:
		if text, ok := f(planText{path, v, run}); ok {
			return text
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at, runs := path+"."+key, run
			if _, file := v["path"].(string); file && key == "text" {
				at = path
			}
			if slices.Contains([]string{"check", "solution", "build", "command", "env", "runtime", "image"}, key) {
				runs = key
			}
			v[key] = eachText(v[key], at, runs, f)
		}
	case []any:
		for i := range v {
			v[i] = eachText(v[i], path+"["+indexOf(v, i)+"]", run, f)
		}
	}
	return v
}

// indexOf returns the name of an item of a list, or its number.
func indexOf(list []any, i int) string {
	if item, ok := list[i].(map[string]any); ok {
		for _, key := range []string{"name", "path", "id"} {
			if name, ok := item[key].(string); ok && name != "" {
				return name
			}
		}
	}
	return fmt.Sprint(i)
}

// nestedTrials tries candidates in episodes of another plan.
type nestedTrials struct {
	kind  world.Kind
	cells []nestedCell
	seed  uint64
	// read returns what happened in an episode. Nil: nobody can tell.
	read func(episode int) ([]world.TranscriptEntry, error)
}

// nestedCell is a cell of the nested plan. Its problems are deals or, where the kind makes several tasks of a deal, these tasks.
type nestedCell struct {
	spec   world.Spec
	seats  []string
	groups []world.Group // of deal 0, with the texts of the plan
	tasks  bool
}

func (p *plan) nest(kind world.Kind, seed uint64) error {
	p.nested = &nestedTrials{kind: kind, seed: seed}
	for _, spec := range p.cells() {
		cell := nestedCell{spec: spec, seats: p.seatsIn(spec)}
		params, err := kind.Read(spec.Params)
		if err != nil {
			return err
		}
		cell.tasks = kind.Plans() && !kind.Uniform(params)
		if cell.groups, err = p.nested.expand(spec); err != nil {
			return err
		}
		p.nested.cells = append(p.nested.cells, cell)
	}
	return nil
}

// expand returns the episodes that the kind makes of a spec.
func (n *nestedTrials) expand(spec world.Spec) ([]world.Group, error) {
	params, err := n.kind.Read(spec.Params)
	if err != nil {
		return nil, err
	}
	if _, err := n.kind.Seats(params); err != nil {
		return nil, err
	}
	stages, err := n.kind.Plan(params, spec, n.seed)
	if err != nil {
		return nil, err
	}
	list, fixed := stages.(world.Specs)
	if !fixed {
		return nil, errors.New("its plan decides from outcomes which episodes it plays")
	}
	var groups []world.Group
	for b := range list.Blocks() {
		for range b.Rounds {
			groups = append(groups, b.Groups...)
		}
	}
	return groups, nil
}

// fits reports whether the kind accepts texts. A text that a model wrote may break a param.
func (p *plan) fits(texts []genome.Genome) bool {
	if p.nested == nil {
		return true
	}
	for i := range p.nested.cells {
		if _, err := p.nested.expand(p.changed(p.nested.cells[i].spec, texts)); err != nil {
			return false
		}
	}
	return true
}

// changed returns a spec with other texts.
func (p *plan) changed(spec world.Spec, texts []genome.Genome) world.Spec {
	spec.Systems = map[string]string{}
	inParams := false
	for i, path := range p.Change {
		if name, ok := strings.CutPrefix(path, "agents."); ok {
			spec.Systems[strings.TrimSuffix(name, ".system")] = texts[i].String()
		} else {
			inParams = true
		}
	}
	var params any
	if !inParams || json.Unmarshal(spec.Params, &params) != nil {
		return spec
	}
	params = eachText(params, "params", "", func(t planText) (string, bool) {
		i := slices.IndexFunc(p.Change, func(change string) bool { return names(change, t.path) })
		if i < 0 {
			return "", false
		}
		return texts[i].String(), true
	})
	if b, err := json.Marshal(params); err == nil {
		spec.Params = b
	}
	return spec
}

// nestedRemark is what specs of trials say about them.
type nestedRemark struct {
	Prompt
	Cell     string   `json:"cell,omitempty"` // of the evolution
	Purpose  string   `json:"purpose"`
	Round    int      `json:"round,omitempty"`
	Baseline string   `json:"baseline,omitempty"`
	Measure  string   `json:"measure"`
	Lower    bool     `json:"lower,omitempty"` // less is better
	Seats    []string `json:"seats,omitempty"`
}

// maxValue is the largest value of a measure that counts: sums of larger ones, and of their squares, may be no numbers.
const maxValue = 1e100

// nestedTrial is one episode of a trial: how good it was, and whether that is known.
func nestedTrial(p world.Played) (r nestedRemark, value float64, known, ok bool) {
	if len(p.Spec.Remark) == 0 || json.Unmarshal(p.Spec.Remark, &r) != nil || r.Purpose == "" {
		return r, 0, false, false
	}
	sum, n := 0.0, 0
	for _, s := range p.Outcome.Scores {
		if s.Name == r.Measure && (s.Seat == "" && len(r.Seats) == 0 || slices.Contains(r.Seats, s.Seat)) {
			sum, n = sum+s.Value, n+1
		}
	}
	value = sum / float64(n)
	if n == 0 || p.Outcome.Failed != "" || !(math.Abs(value) <= maxValue) {
		return r, 0, false, true
	}
	if r.Lower {
		value = -value
	}
	return r, value, true, true
}

// nestedSpecs returns the episodes of a trial on the problems from, up to but not including to.
func (p *plan) nestedSpecs(a *askedTrial, label string) world.Specs {
	var parts []world.Specs
	for i := range p.nested.cells {
		cell := &p.nested.cells[i]
		remark, err := json.Marshal(nestedRemark{
			Prompt: a.in.Prompt, Cell: p.cell.Cell, Purpose: a.Purpose, Round: a.Round, Baseline: a.Baseline, Measure: p.measure().Name, Lower: p.Minimize != "", Seats: cell.seats,
		})
		if err != nil {
			continue // not reached: these are plain values
		}
		spec := p.changed(cell.spec, a.in.texts)
		if a.Model != "" {
			for name, text := range maps.Clone(spec.Systems) {
				spec.Systems[world.AgentWith(name, a.Model)] = text
			}
		}
		groups, err := p.nested.expand(spec)
		if err != nil {
			continue // not reached: fits has tried it
		}
		for k := range groups {
			s := &groups[k].Spec
			s.Lineup = withModel(s.Lineup, p.changedSeats(cell.spec), a.Model)
			s.Remark, s.Cell = remark, strings.TrimPrefix(cell.spec.Cell+", "+label, ", ")
			if p.cell.Cell != "" {
				s.Cell = p.cell.Cell + ": " + s.Cell
			}
		}
		block := world.Block{Rounds: a.to - a.from}
		if cell.tasks {
			block.Rounds = 1
			block.Groups = groups[a.from:a.to]
		} else {
			for _, g := range groups {
				block.Groups = append(block.Groups, world.Group{Spec: g.Spec.WithDeal(g.Spec.Deal + a.from), Size: g.Size})
			}
		}
		specs, err := world.Blocks(block)
		if err != nil {
			continue // not reached: check limits the numbers
		}
		for round := range block.Rounds {
			for k, g := range block.Groups {
				problem := round
				if cell.tasks {
					problem = k
				}
				a.of = append(a.of, slices.Repeat([]int{problem}, g.Size)...)
			}
		}
		parts = append(parts, specs)
	}
	return world.Join(parts...)
}

// nestedResults returns the results of a trial, by problem, and the number of its episodes.
func (p *plan) nestedResults(a *askedTrial, last []world.Played) (results []Result, episodes int) {
	results = make([]Result, a.to-a.from)
	sums := make([]float64, len(results))
	for i, problem := range a.of {
		r := &results[problem]
		r.Problem, r.Asked = fmt.Sprintf("problem %d", a.from+problem), r.Asked+1
		if i >= len(last) {
			r.Failed++
			continue
		}
		if _, value, known, _ := nestedTrial(last[i]); known {
			sums[problem] += value
		} else {
			r.Failed++
		}
		r.Episodes = append(r.Episodes, last[i].Episode)
	}
	for i := range results {
		if n := results[i].Asked - results[i].Failed; n > 0 {
			mean := sums[i] / float64(n)
			results[i].Value = &mean
		}
	}
	return results, min(len(a.of), len(last))
}

// The limits of what a reflection is shown of an episode, and of all of them.
const (
	maxShownText  = 1_500  // characters of one answer
	maxShownCase  = 12_000 // characters of one episode
	maxShownLines = 60     // of one episode: its first and its last
)

// nestedCases returns what happened in the worst episodes of a candidate, and in its best.
func (p *plan) nestedCases(a *individual) []Case {
	type scored struct {
		episode int
		value   float64
	}
	var all []scored
	for _, r := range a.train {
		if r.Value == nil {
			continue
		}
		for _, n := range r.Episodes {
			all = append(all, scored{n, *r.Value})
		}
	}
	if p.nested.read == nil || len(all) == 0 {
		return nil
	}
	p.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(x, y scored) int { return cmp.Compare(x.value, y.value) })
	chosen := all[:min(len(all), p.FailedCases)]
	if best := all[len(all)-1]; len(all) > len(chosen) && best.value > chosen[len(chosen)-1].value {
		chosen = append(slices.Clip(chosen), best)
	}
	var cases []Case
	for _, s := range chosen {
		transcript, err := p.nested.read(s.episode)
		if err != nil {
			p.failed = fmt.Errorf("episode %d, for a reflection: %w", s.episode, err)
			return nil
		}
		value := s.value
		if p.Minimize != "" {
			value = -value
		}
		cases = append(cases, Case{Value: fmt.Sprintf("%.4g", value), Response: transcriptText(transcript)})
	}
	return cases
}

// transcriptText writes what was said and noted in an episode. Each line begins with a mark, so that nothing in it can be taken for something
// else.
func transcriptText(entries []world.TranscriptEntry) string {
	var b strings.Builder
	left := maxShownCase
	skip := len(entries) - maxShownLines
	if skip > 0 {
		entries = slices.Concat(entries[:maxShownLines/2], entries[len(entries)-maxShownLines/2:])
	}
	for i, e := range entries {
		if skip > 0 && i == maxShownLines/2 {
			fmt.Fprintf(&b, "(%d more)\n", skip)
		}
		var who, text string
		switch {
		case e.Note != nil:
			who, text = strings.TrimSpace(e.Note.Kind+" "+e.Note.Seat), string(e.Note.Data)
		case e.Act != nil:
			who, text = strings.TrimSpace(e.Act.Name+" "+e.Seat), string(e.Act.Body)+" → "+replyText(e.Reply)
		default:
			who, text = strings.TrimSpace(e.Seat+" ("+e.Agent+"), "+e.Label), replyText(e.Reply)
		}
		text = exhibit.Shorten(cleanText(text), min(maxShownText, left))
		line := "| " + strings.Join(strings.Fields(who), " ") + ": " + strings.ReplaceAll(text, "\n", "\n|   ") + "\n"
		if left -= len(line); left <= 0 {
			b.WriteString("(the rest is left out)\n")
			break
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n")
}

func replyText(r world.Reply) string {
	switch {
	case !r.OK():
		return "failed: " + string(r.Failed)
	case r.Text != "":
		return r.Text
	case len(r.ToolCalls) > 0:
		if b, err := json.Marshal(r.ToolCalls); err == nil {
			return string(b)
		}
	}
	return string(r.JSON)
}
