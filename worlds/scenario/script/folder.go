package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/world/part"
)

// The files of a folder.
const (
	scenarioFile = "scenario.yaml"
	metricsFile  = "metrics.yaml"
	checksFile   = "validation-rules.yaml"
	eventsFile   = "exogenous-events.yaml"
)

// reader collects a script from the files of a folder.
type reader struct {
	files  world.Files
	dir    string
	script *Script
	errs   []error
	advice []string
	// broken means that a file is not valid YAML, so what depends on it cannot be checked.
	broken bool
	off    features

	scenario, metrics, checks, events world.Document
	actors                            []world.Document // in the order of script.Actors
	// spelled maps a script key to the key that the scenario file uses for it.
	spelled map[string]string
}

// ReadFolder reads the scenario folder dir: scenario.yaml, actors/*.yaml and, if they exist, metrics.yaml,
// validation-rules.yaml, exogenous-events.yaml and background/*.md. It refuses an unknown key, a misnamed file and
// an invalid value. Package earlier converts folders in other spellings. advice says what to write differently, although it was
// understood. The error joins everything that is wrong, with file, line, column and key.
func ReadFolder(files world.Files, dir string) (s *Script, advice []string, err error) {
	clean := strings.TrimSuffix(strings.TrimSuffix(path.Clean(dir), "/"+scenarioFile), "/")
	r := &reader{files: files, dir: clean, script: &Script{From: dir}, spelled: map[string]string{}}
	if len(files.Match(r.path(scenarioFile))) == 0 {
		return nil, nil, r.missing(dir)
	}
	r.readScenario()
	r.readActors()
	r.readMetrics()
	r.readChecks()
	r.readEvents()
	r.readBackground()
	r.misnamed()
	if !r.broken {
		for _, p := range r.script.Problems() {
			r.problem(p)
		}
	}
	return r.script, r.advice, errors.Join(r.errs...)
}

func (r *reader) path(name string) string { return r.dir + "/" + name }

// missing explains why a folder is not that of a scenario.
func (r *reader) missing(dir string) error {
	if found := r.files.Match(r.path("definition/" + scenarioFile)); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: the files are in its folder definition: write %s/definition", dir, r.dir)
	}
	if found := r.files.Match(r.path("definition/scenario.yml")); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: the files are in its folder definition, as in the earlier Scenario Lab: convert the folder with parley init scenario --from FOLDER", dir)
	}
	if found := r.files.Match(r.path("scenario.yml")); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: rename its scenario.yml to %s", dir, scenarioFile)
	}
	if beside, ok := r.files.(part.FolderLister); ok {
		parent, base := path.Split(r.dir)
		names := beside.Folders(parent)
		if like := part.Nearest(base, names); base != "." && base != ".." && !slices.Contains(names, base) {
			if like != "" {
				return fmt.Errorf("params.folder: %q: no such folder; did you mean %s?", dir, parent+like)
			}
			return fmt.Errorf("params.folder: %q: no such folder; name the folder of a scenario, beside the plan file", dir)
		}
	}
	return fmt.Errorf("params.folder: %q: there is no %s in it; name the folder of a scenario, beside the plan file", dir, scenarioFile)
}

// fail reports a problem at a key of a file.
func (r *reader) fail(d world.Document, key, format string, args ...any) {
	if d == nil {
		return
	}
	if err := d.Fault(key, format, args...); err != nil {
		r.errs = append(r.errs, err)
	}
}

// advise adds advice on how to write something that was understood.
func (r *reader) advise(d world.Document, key, format string, args ...any) {
	if d != nil {
		r.advice = append(r.advice, d.Place(key)+": "+fmt.Sprintf(format, args...))
	}
}

// yaml reads one of the files. It is not ok if the file is missing or not valid YAML.
func (r *reader) yaml(name string, v any) (world.Document, bool) {
	if len(r.files.Match(r.path(name))) == 0 {
		return nil, false
	}
	d, err := r.files.YAML(r.path(name), v)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	if d == nil {
		r.broken = true
	}
	return d, d != nil
}

// problem reports a problem of the script at its place in the files.
func (r *reader) problem(p Problem) {
	head, rest, nested := strings.Cut(p.Key, ".")
	index := 0
	_, err := fmt.Sscanf(head[strings.IndexByte(head+"[", '['):]+" ", "[%d]", &index)
	list := err == nil
	switch {
	case list && strings.HasPrefix(head, "actors") && index < len(r.actors):
		r.fail(r.actors[index], rest, "%s", p.What)
	case list && strings.HasPrefix(head, "metrics"):
		r.fail(r.metrics, p.Key, "%s", p.What)
	case list && strings.HasPrefix(head, "events"):
		r.fail(r.events, "exogenous_"+p.Key, "%s", p.What)
	case nested && head == "validation":
		r.fail(r.checks, rest, "%s", p.What)
	default:
		key := p.Key
		if s := r.spelled[key]; s != "" {
			key = s
		}
		r.fail(r.scenario, key, "%s", p.What)
	}
}

// misnamed reports files whose names suggest that they should be read, but that are not.
func (r *reader) misnamed() {
	known := []string{scenarioFile, metricsFile, checksFile, eventsFile}
	found := append(r.files.Match(r.path("*.yaml")), r.files.Match(r.path("*.yml"))...)
	for _, file := range found {
		name := path.Base(file)
		for _, like := range []struct{ word, file string }{{"metric", metricsFile}, {"valid", checksFile}, {"check", checksFile}, {"event", eventsFile}} {
			if !slices.Contains(known, name) && strings.Contains(strings.ToLower(name), like.word) {
				r.errs = append(r.errs, fmt.Errorf("params.folder: %s would not be read: rename it to %s", file, like.file))
				break
			}
		}
	}
}

// readBackground reads the documents that everybody can read.
func (r *reader) readBackground() {
	for _, file := range append(r.files.Match(r.path("background/*.md")), r.files.Match(r.path("background/*.txt"))...) {
		text, err := r.files.Text(file)
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		if text = strings.TrimSpace(text); text != "" {
			r.script.Background = append(r.script.Background, Document{Name: path.Base(file), Text: text})
		}
	}
}

// situation is scenario.yaml.
type situation struct {
	Name         *string `json:"name"`
	Description  string  `json:"description"`
	Author       string  `json:"author"`
	Tags         any     `json:"tags"`
	Version      any     `json:"schema_version"`
	System       string  `json:"system_prompt"`
	State        string  `json:"initial_world_state"`
	Background   any     `json:"background_information"`
	TurnDuration string  `json:"turn_duration"`

	Turns  *int    `json:"turns"`
	Length *length `json:"scenario_length"`

	Actors any    `json:"actors"`
	Model  string `json:"world_state_model"`

	Window *int `json:"context_window_size"`

	Statements *bool    `json:"enable_public_statements"`
	Bilateral  *bool    `json:"enable_bilateral_communication"`
	Coalitions *bool    `json:"enable_coalition_formation"`
	Max        *int     `json:"max_communications_per_turn"`
	Rounds     *int     `json:"bilateral_rounds"`
	BlackSwans *bool    `json:"enable_black_swans"`
	Swan       *float64 `json:"black_swan_probability"`
	Reflection *bool    `json:"allow_actor_reflection"`
	Parallel   *bool    `json:"parallel_action_resolution"`

	Features features `json:"features"`
}

// length is the length of a scenario.
type length struct {
	Type      string `json:"type" oneof:"fixed,condition"`
	Turns     *int   `json:"turns"`
	Condition any    `json:"condition"`
}

// features turn parts of a scenario off.
type features struct {
	Communications *bool `json:"communications"`
	Events         *bool `json:"exogenous_events"`
	Metrics        *bool `json:"metrics_extraction"`
	Checks         *bool `json:"quality_assurance"`
	Context        *bool `json:"context_management"`
}

// The defaults of a scenario.
const (
	defaultWindow = 3
	defaultSwan   = 0.05
)

func (r *reader) readScenario() {
	var f situation
	d, ok := r.yaml(scenarioFile, &f)
	if !ok {
		return
	}
	r.scenario, r.off = d, f.Features
	s := r.script
	s.Name, s.Description, s.Author = strings.TrimSpace(orDefault(f.Name, "")), strings.TrimSpace(f.Description), f.Author
	s.Tags = r.texts(d, "tags", f.Tags)
	s.System, s.State = strings.TrimSpace(f.System), strings.TrimSpace(f.State)
	s.TurnDuration, s.NarratorModel = strings.TrimSpace(f.TurnDuration), f.Model
	for _, text := range r.texts(d, "background_information", f.Background) {
		s.Background = append(s.Background, Document{Name: "background information", Text: text})
	}
	s.Reflect, s.Parallel = orDefault(f.Reflection, false), orDefault(f.Parallel, false)
	r.readVersion(f.Version)
	r.readLength(&f)
	r.readWindow(&f)
	r.readTalk(&f)
	if s.BlackSwan = orDefault(f.Swan, defaultSwan); !orDefault(f.BlackSwans, f.Swan != nil) {
		s.BlackSwan = 0
	}
	s.Actors = nil
	for i, short := range r.texts(d, "actors", f.Actors) {
		if s.Actor(short) >= 0 {
			r.fail(d, indexed("actors", i), "%s is listed twice", short)
			continue
		}
		s.Actors = append(s.Actors, Actor{ShortName: short})
	}
}

// readVersion accepts any version so far.
func (r *reader) readVersion(v any) {
	text, ok := PlainText(v)
	if v == nil || ok && (text == "1" || text == "2" || strings.HasPrefix(text, "1.") || strings.HasPrefix(text, "2.")) {
		return
	}
	r.fail(r.scenario, "schema_version", "wants 1 or 2, or leave it out")
}

// readLength reads the number of turns, and the condition that ends the scenario earlier.
func (r *reader) readLength(f *situation) {
	d, s := r.scenario, r.script
	turns := f.Turns
	if l := f.Length; l != nil {
		if turns != nil && l.Turns != nil && *turns != *l.Turns {
			r.fail(d, "scenario_length.turns", "is %d, and turns is %d: give one of them", *l.Turns, *turns)
		}
		if turns == nil && l.Turns != nil {
			turns, r.spelled["turns"] = l.Turns, "scenario_length.turns"
			if l.Condition == nil {
				r.advise(d, "scenario_length.turns", "is read as turns: write turns")
			}
		}
		switch {
		case l.Type == "condition" && l.Condition == nil:
			r.fail(d, "scenario_length.condition", "is missing: what ends the scenario, as tension >= 9")
		case l.Type == "fixed" && l.Condition != nil:
			r.fail(d, "scenario_length.condition", "conflicts with type: fixed; write type: condition, or leave it out")
		case l.Condition != nil:
			s.End = r.conditions(d, "scenario_length.condition", l.Condition)
			r.spelled["end"] = "scenario_length.condition"
		}
	}
	if turns == nil {
		what := "is missing: the number of turns"
		if s.End != nil {
			what = "is missing: the maximum number of turns, because the condition may never hold"
		}
		r.fail(d, "turns", "%s", what)
		s.Turns = MaxTurns // avoids further errors
		return
	}
	s.Turns = *turns
}

func (r *reader) readWindow(f *situation) {
	s := r.script
	s.Window = orDefault(f.Window, defaultWindow)
	if !orDefault(f.Features.Context, true) {
		s.Window = max(1, min(s.Turns, MaxTurns)) // everything is remembered
	}
}

func (r *reader) readTalk(f *situation) {
	t := &r.script.Talk
	if !orDefault(f.Features.Communications, true) {
		return
	}
	t.Statements, t.Bilateral, t.Coalitions = orDefault(f.Statements, false), orDefault(f.Bilateral, false), orDefault(f.Coalitions, false)
	if t.Bilateral || t.Coalitions {
		t.Max, t.Rounds = orDefault(f.Max, defaultMax), orDefault(f.Rounds, defaultRounds)
		return
	}
	const idle = "has no effect: neither enable_bilateral_communication nor enable_coalition_formation is true"
	if f.Max != nil {
		r.advise(r.scenario, "max_communications_per_turn", idle)
	}
	if f.Rounds != nil {
		r.advise(r.scenario, "bilateral_rounds", idle)
	}
}

// conditions reads conditions: a mapping of metrics to comparisons, a text, or a
// list of either.
func (r *reader) conditions(d world.Document, key string, v any) []Condition {
	switch v := v.(type) {
	case map[string]any:
		return r.conditionMap(d, key, v)
	case []any:
		var all []Condition
		for i, item := range v {
			all = append(all, r.conditions(d, indexed(key, i), item)...)
		}
		return all
	case string:
		all, err := ParseConditions(v)
		if err != nil {
			r.fail(d, key, "%v", err)
		}
		return all
	}
	r.fail(d, key, "wants metrics and comparisons, as {tension: \">= 7\"}")
	return nil
}

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
			r.fail(r.scenario, indexed("actors", i), "there is no file actors/%s.yaml, and no file with short_name %s; there are files for %s", l.ShortName, l.ShortName, orNone(order))
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
		Name: strings.TrimSpace(f.Name), ShortName: strings.TrimSpace(orDefault(f.ShortName, stem)),
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
		r.fail(d, "control", "human: who plays an actor is decided in the plan: leave control out, and put an agent with the model human into its seat")
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

// metricFile is metrics.yaml.
type metricFile struct {
	Metrics []metric `json:"metrics"`
}

type metric struct {
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	Type          string     `json:"type" oneof:"continuous,categorical,boolean"`
	Range         []float64  `json:"range"`
	Categories    any        `json:"categories"`
	Extraction    extraction `json:"extraction"`
	Unit          string     `json:"unit"`
	ActorSpecific bool       `json:"actor_specific"`
	Warning       *float64   `json:"warning_threshold"`
	Critical      *float64   `json:"critical_threshold"`
}

type extraction struct {
	Type     string `json:"type" oneof:"llm,keyword,pattern,manual"`
	Prompt   string `json:"prompt"`
	Model    string `json:"model"`
	Keywords any    `json:"keywords"`
	Scoring  string `json:"scoring" oneof:"count,presence,density"`
	Pattern  string `json:"pattern"`
	Values   any    `json:"values"`
}

func (r *reader) readMetrics() {
	var f metricFile
	d, ok := r.yaml(metricsFile, &f)
	if !ok || !orDefault(r.off.Metrics, true) {
		return
	}
	r.metrics = d
	for i, m := range f.Metrics {
		here := indexed("metrics", i)
		out := Metric{
			Name: m.Name, Description: strings.TrimSpace(m.Description), Type: m.Type, Range: m.Range, Unit: m.Unit,
			Categories: r.texts(d, here+".categories", m.Categories), ActorSpecific: m.ActorSpecific, Warning: m.Warning, Critical: m.Critical,
		}
		out.Extraction = r.extraction(d, here+".extraction", m.Extraction)
		r.script.Metrics = append(r.script.Metrics, out)
	}
}

func (r *reader) extraction(d world.Document, here string, e extraction) Extraction {
	out := Extraction{
		Type: e.Type, Prompt: strings.TrimSpace(e.Prompt), Model: e.Model, Keywords: r.texts(d, here+".keywords", e.Keywords),
		Scoring: e.Scoring, Pattern: e.Pattern, Values: r.manual(d, here, e.Values),
	}
	if out.Scoring == "" && out.Type == ByKeyword {
		out.Scoring = "count"
	}
	if out.Model != "" && out.Type != ByModel {
		r.advise(d, here+".model", "has no effect: no model is asked for a metric of type %s", out.Type)
		out.Model = ""
	}
	if out.Type == byHand && len(out.Values) == 0 {
		r.advise(d, here+".type", "manual without values, so it stays unknown: write values: [..], the first for turn 1")
	}
	return out
}

// manual reads values given by hand. An empty value is unknown.
func (r *reader) manual(d world.Document, here string, v any) []string {
	if v == nil {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		r.fail(d, here+".values", "wants a list, the value of turn 1 first")
		return nil
	}
	out := make([]string, len(items))
	for i, item := range items {
		text, ok := PlainText(item)
		if !ok && item != nil {
			r.fail(d, indexed(here+".values", i), "wants a single value, or nothing if it is unknown")
		}
		out[i] = text
	}
	return out
}

// checkFile is validation-rules.yaml.
type checkFile struct {
	Model  string `json:"validation_model"`
	Checks checks `json:"checks"`
	Each   *bool  `json:"run_after_each_turn"`
	Turns  *bool  `json:"generate_turn_reports"`
	Sum    *bool  `json:"generate_summary"`
	Halt   bool   `json:"halt_on_critical"`
	Issues *int   `json:"max_issues_before_halt"`
	Rules  any    `json:"scenario_specific_rules"`
}

type checks struct {
	Decisions   *check `json:"actor_decision_consistency"`
	World       *check `json:"world_state_coherence"`
	Information *check `json:"information_access_consistency"`
	Goals       *check `json:"goal_progress_tracking"`
}

type check struct {
	Enabled     *bool  `json:"enabled"`
	Severity    string `json:"severity" oneof:"low,medium,high,critical"`
	Description string `json:"description"`
}

func (r *reader) readChecks() {
	var f checkFile
	d, ok := r.yaml(checksFile, &f)
	if !ok || !orDefault(r.off.Checks, true) {
		return
	}
	r.checks = d
	v := &r.script.Validation
	*v = Validation{
		Model: f.Model, LastOnly: !orDefault(f.Each, true), Reports: orDefault(f.Turns, true), Summary: orDefault(f.Sum, true),
		HaltOnCritical: f.Halt, MaxIssues: orDefault(f.Issues, 0), Rules: r.texts(d, "scenario_specific_rules", f.Rules),
	}
	if f.Issues != nil && *f.Issues < 1 {
		r.fail(d, "max_issues_before_halt", "wants 1 or more, found %d; leave it out to continue whatever is found", *f.Issues)
	}
	for _, one := range []struct {
		name string
		c    *check
	}{
		{CheckDecisions, f.Checks.Decisions}, {CheckWorld, f.Checks.World},
		{CheckInformation, f.Checks.Information}, {CheckGoals, f.Checks.Goals},
	} {
		if one.c == nil || !orDefault(one.c.Enabled, true) {
			continue
		}
		severity := one.c.Severity
		if severity == "" {
			severity = "medium"
		}
		v.Checks = append(v.Checks, Check{Name: one.name, Severity: severity, Description: strings.TrimSpace(one.c.Description)})
	}
	if len(v.Rules) > 0 {
		v.Checks = append(v.Checks, Check{Name: CheckRules, Severity: "medium"})
	}
	if len(v.Checks) == 0 {
		r.advise(d, "checks", "nothing is checked: enable a check, or write scenario_specific_rules")
	}
}

// eventFile is exogenous-events.yaml.
type eventFile struct {
	Events []event `json:"exogenous_events"`
}

// event is an event of exogenous_events.
type event struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Range       []int    `json:"turn_range"`
	Frequency   *int     `json:"frequency"`
	Probability *float64 `json:"probability"`
	Conditions  any      `json:"conditions"`
	Turn        *int     `json:"turn"`
	Turns       []int    `json:"turns"`
	Once        *bool    `json:"once"`
}

func (r *reader) readEvents() {
	var f eventFile
	d, ok := r.yaml(eventsFile, &f)
	if !ok || !orDefault(r.off.Events, true) {
		return
	}
	r.events = d
	for i, e := range f.Events {
		r.script.Events = append(r.script.Events, r.event(e, indexed("exogenous_events", i)))
	}
}

func (r *reader) event(e event, here string) Event {
	d := r.events
	out := Event{
		Name:        strings.TrimSpace(e.Name),
		Description: strings.TrimSpace(e.Description),
		Type:        e.Type,
		Range:       e.Range,
		Frequency:   orDefault(e.Frequency, 0),
		Probability: e.Probability,
		Turns:       e.Turns,
	}
	if e.Turn != nil {
		out.Turns = append([]int{*e.Turn}, e.Turns...)
	}
	if e.Conditions != nil {
		out.Conditions = r.conditions(d, here+".conditions", e.Conditions)
	}
	if last := r.script.Turns; len(out.Turns) > 0 && slices.Min(out.Turns) > last || len(out.Range) == 2 && out.Range[0] > last {
		r.advise(d, here, "never happens: the last turn is %d", last)
	}
	out.Once = orDefault(e.Once, out.Type != EventTrend)
	return out
}

// conditionMap reads {tension: ">= 7"}.
func (r *reader) conditionMap(d world.Document, key string, m map[string]any) []Condition {
	var all []Condition
	for _, name := range slices.Sorted(maps.Keys(m)) {
		with, ok := PlainText(m[name])
		if !ok {
			r.fail(d, key+"."+name, "wants a comparison such as \">= 7\"")
			continue
		}
		c, err := Compare(name, with)
		if err != nil {
			r.fail(d, key+"."+name, "%v", err)
			continue
		}
		all = append(all, c)
	}
	return all
}

// texts reads a value that is a text, a list of texts, or a mapping of names to
// texts.
func (r *reader) texts(d world.Document, key string, v any) []string {
	var out []string
	switch v := v.(type) {
	case nil:
	case []any:
		for i, item := range v {
			text, ok := PlainText(item)
			if !ok {
				if text, ok = pairText(item); !ok {
					r.fail(d, key+"["+strconv.Itoa(i)+"]", "wants a text, or a mapping of names to texts")
					continue
				}
			}
			if text != "" {
				out = append(out, text)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text, ok := PlainText(v[name])
			if !ok {
				text = strings.Join(r.texts(d, key+"."+name, v[name]), "; ")
			}
			out = append(out, name+": "+text)
		}
	default:
		if text, ok := PlainText(v); ok && text != "" {
			out = bullets(text)
		}
	}
	return out
}

// bullets splits a text whose lines are all bullet points. Any other text is one item.
func bullets(text string) []string {
	var items []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		item, ok := strings.CutPrefix(line, "- ")
		if !ok {
			if item, ok = strings.CutPrefix(line, "* "); !ok {
				return []string{text}
			}
		}
		items = append(items, strings.TrimSpace(item))
	}
	return items
}

// PlainText returns a single value of a file as text.
func PlainText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// pairText formats a mapping of single values as "name: text; name: text".
func pairText(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text, ok := PlainText(m[name])
		if !ok {
			return "", false
		}
		parts = append(parts, name+": "+text)
	}
	return strings.Join(parts, "; "), true
}

// orDefault returns what a pointer points to, or a default.
func orDefault[T any](p *T, or T) T {
	if p == nil {
		return or
	}
	return *p
}

func indexed(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
