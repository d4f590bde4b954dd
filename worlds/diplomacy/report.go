package diplomacy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

// report is the kind's part of a report, over any number of games. It accepts outcomes from
// anywhere, broken ones too, and shows what it can read.
type report struct {
	agents []string // in order of appearance
	years  []int
	later  map[int]bool // years that are not the start of some game

	scores    exhibit.Crossed // by agent and power
	centres   exhibit.Crossed // by power and year
	relations exhibit.Crossed // by power and power
	betrayals exhibit.Crossed // by agent and agent: in a game
	broken    exhibit.Crossed // by agent and agent: promises in a game
	success   exhibit.Crossed // by kind of order and agent
	mix       exhibit.Crossed // by kind of order and agent: its share
	conduct   exhibit.Crossed // by agent and score
	ends      exhibit.Counts
	invalid   exhibit.Counts // by reason and agent
	moments   []episodeMoment
	lies      map[string][]episodeMoment // by kind: betrayals and broken promises
	lied      map[string]int             // by kind: how many there are in all
	judged    bool                       // promises were looked for in a game
}

type pair = [2]string

// powerScores lists the names of the scores of each power.
func powerScores() []string {
	return []string{"score", "centres", "survived", "solo", "success", "invalid", "messages", "betrayals", "kept"}
}

// scoreBounds returns the bounds of one of these scores.
func scoreBounds(score, scoring string) world.Bounds {
	switch score {
	case "score":
		if scoring == scoreShare || scoring == scoreDraw {
			return world.Share()
		}
		return world.AtLeast0()
	case "messages", "betrayals":
		return world.AtLeast0()
	case "centres":
		return world.Bounds{High: rules.Centres}
	default:
		return world.Share()
	}
}

// episodeMoment is a key moment, its episode, and who did it to whom: powers with their agents.
type episodeMoment struct {
	episode int
	keyMoment
	who, whom string
}

// newReport returns a report of no games.
func newReport() exhibit.Exhibitor {
	return &report{
		later: map[int]bool{}, scores: exhibit.Crossed{}, centres: exhibit.Crossed{}, relations: exhibit.Crossed{}, betrayals: exhibit.Crossed{}, broken: exhibit.Crossed{}, success: exhibit.Crossed{}, mix: exhibit.Crossed{}, conduct: exhibit.Crossed{},
		ends: exhibit.Counts{}, invalid: exhibit.Counts{}, lies: map[string][]episodeMoment{}, lied: map[string]int{},
	}
}

// agentOf returns the agent in a seat, or the seat's name if the lineup does not say.
func agentOf(p world.Played, seat string) string {
	if agent := p.Spec.Lineup[seat]; agent != "" {
		return agent
	}
	return seat
}

// nameOf returns a power with its agent, as ENGLAND (bold).
func nameOf(p world.Played, power string) string {
	if agent := p.Spec.Lineup[power]; agent != "" {
		return power + " (" + agent + ")"
	}
	return addressee(power)
}

// summaryOf returns the data of a game that did not fail.
func summaryOf(p world.Played) (s gameSummary, ok bool) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	ok = p.Outcome.Failed == "" && json.Unmarshal(raw, &s) == nil
	return s, ok
}

// Add adds a game.
func (r *report) Add(p world.Played) {
	s, ok := summaryOf(p)
	if !ok || len(s.Powers) == 0 {
		return
	}
	r.ends[pair{s.Ended}]++
	byAgent := map[string][]*powerStats{}
	for _, power := range rules.PowerNames() {
		st := s.Powers[power]
		if st == nil {
			continue
		}
		agent := agentOf(p, power)
		exhibit.AddOnce(&r.agents, agent)
		byAgent[agent] = append(byAgent[agent], st)
	}
	for agent, list := range byAgent {
		r.addAgent(p.Unit, agent, list)
	}
	r.addScores(p, s.Scoring)
	r.addCentres(p.Unit, s.Centres)
	for a, row := range s.Relations {
		for b, v := range row {
			r.relations.At(a, b, world.Bounds{Low: -2, High: 2}).Add(p.Unit, v)
		}
	}
	if len(s.Relations) > 0 { // otherwise nothing is known about betrayals
		addVictims(r.betrayals, p, &s, func(st *powerStats) map[string]int { return st.Victims })
	}
	if s.Judged > 0 {
		r.judged = true
		addVictims(r.broken, p, &s, func(st *powerStats) map[string]int { return st.BrokenTo })
	}
	r.addMoments(p, &s)
}

// addVictims counts what agents did to each other in one game, for each agent and each other seat's agent. victims counts what one
// power did, by power.
func addVictims(to exhibit.Crossed, p world.Played, s *gameSummary, victims func(*powerStats) map[string]int) {
	count := map[pair]float64{}
	for a := range s.Powers {
		for b := range s.Powers {
			if a != b {
				count[pair{agentOf(p, a), agentOf(p, b)}] += 0
			}
		}
	}
	for by, power := range s.Powers {
		if power == nil {
			continue
		}
		for of, n := range victims(power) { // not the moments: a summary keeps only some of them
			if s.Powers[of] != nil && by != of {
				count[pair{agentOf(p, by), agentOf(p, of)}] += float64(max(0, n))
			}
		}
	}
	for k, n := range count {
		to.At(k[0], k[1], world.AtLeast0()).Add(p.Unit, n)
	}
}

// addMoments adds the moments of one game. Betrayals and broken promises are apart.
func (r *report) addMoments(p world.Played, s *gameSummary) {
	for _, m := range s.Moments {
		one := episodeMoment{p.Episode, m, nameOf(p, m.Power), nameOf(p, m.Other)}
		if m.Kind == momentBetrayal || m.Kind == momentPromise {
			r.lies[m.Kind] = append(r.lies[m.Kind], one)
		} else {
			r.moments = append(r.moments, one)
		}
	}
	r.moments = heaviest(r.moments)
	for kind, list := range r.lies {
		r.lies[kind] = heaviest(list)
	}
	const limit = 1 << 20 // no game has more
	for _, st := range s.Powers {
		if st != nil { // not the moments: a summary keeps only some of them
			r.lied[momentBetrayal] += min(max(0, st.Betrayed), limit)
			r.lied[momentPromise] += min(max(0, st.Broken), limit)
		}
	}
}

// addScores adds the scores of the outcome, the same that other tables show: a power that
// never gave a legal order has none.
func (r *report) addScores(p world.Played, scoring string) {
	values := map[pair][]float64{}
	for _, s := range p.Outcome.Scores {
		if s.Seat == "" || !slices.Contains(powerScores(), s.Name) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		k := pair{agentOf(p, s.Seat), s.Name}
		values[k] = append(values[k], s.Value)
		if s.Name == "score" {
			r.scores.At(k[0], s.Seat, scoreBounds(s.Name, scoring)).Add(p.Unit, s.Value)
		}
	}
	for k, list := range values {
		r.conduct.At(k[0], k[1], scoreBounds(k[1], scoring)).Add(p.Unit, list...)
	}
}

// maxReportMoments is how many moments a report shows.
const maxReportMoments = 20

// heaviest returns the moments with the most weight, the earliest of equal ones.
func heaviest(all []episodeMoment) []episodeMoment {
	slices.SortStableFunc(all, func(a, b episodeMoment) int { return cmp.Compare(b.Weight, a.Weight) })
	return all[:min(len(all), maxReportMoments)]
}

func (r *report) addCentres(u world.Unit, counts []centreCount) {
	for i, c := range counts {
		if i > 0 {
			r.later[c.Year] = true
		}
		exhibit.AddOnce(&r.years, c.Year)
		for _, power := range rules.PowerNames() {
			r.centres.At(power, fmt.Sprint(c.Year), scoreBounds("centres", "")).Add(u, float64(c.Centres[power]))
		}
	}
}

// addAgent adds what an agent did in one game, in all of its seats.
func (r *report) addAgent(u world.Unit, agent string, list []*powerStats) {
	for _, kind := range orderKinds() {
		var success, mix []float64
		for _, st := range list {
			n, succeeded := st.tried(kind)
			if n > 0 {
				success = append(success, float64(succeeded)/float64(n))
			}
			if all := countOrders(st); all > 0 {
				mix = append(mix, float64(n)/float64(all))
			}
		}
		r.success.At(kind, agent, world.Share()).Add(u, success...)
		r.mix.At(kind, agent, world.Share()).Add(u, mix...)
	}
	for _, st := range list {
		for reason, n := range st.Refused {
			r.invalid[pair{reason, agent}] += n
		}
		if st.Missing > 0 {
			r.invalid[pair{"order: missing", agent}] += st.Missing
		}
	}
}

// orderKinds lists the kinds of orders of movement phases.
func orderKinds() []string { return []string{"move", "support", "convoy", "hold"} }

// countOrders counts a power's orders in movement phases.
func countOrders(p *powerStats) int {
	all := 0
	for _, kind := range orderKinds() {
		n, _ := p.tried(kind)
		all += n
	}
	return all
}

// Exhibits returns the tables and charts.
func (r *report) Exhibits() []exhibit.Exhibit {
	if len(r.agents) == 0 {
		return nil
	}
	slices.Sort(r.years)
	powers, page := rules.PowerNames(), exhibit.Page{Prefix: "diplomacy-"}
	page.Add("conduct", "How agents did", "Means over games; an agent in several seats of a game counts once for it. Success: share of moves, supports and convoys that succeeded. Invalid: share of written orders that were not legal. Betrayals: attacks on a power that called the attacker friendly or ally. Kept: share of checked promises that were kept.", r.showConduct())
	lies, caption := r.showLies()
	page.Add("lies", "Lies and betrayals", caption, lies)
	page.Add("betrayals", "Who betrays whom", "How often the agent of the row dislodged, or took a centre from, a power of the agent of the column that called it friendly or ally: the mean over games with both, over all of their seats.", r.betrayals.HeatMap(exhibit.HeatMap{Row: "betrayer", Column: "betrayed", What: "betrayals in a game", Rows: r.agents, Columns: r.agents}))
	page.Add("broken", "Who breaks promises to whom", "How many promises of the agent of the row to a power of the agent of the column its orders broke: the mean over games with both, over all of their seats. Promises to all powers do not count here.", r.broken.HeatMap(exhibit.HeatMap{Row: "promiser", Column: "promised", What: "broken promises in a game", Rows: r.agents, Columns: r.agents}))
	page.Add("powers", "Score by power and agent", "The mean score of each agent with each power.", r.scores.HeatMap(exhibit.HeatMap{Row: "agent", Column: "power", What: "score", Rows: r.agents, Columns: powers}))
	page.Add("centres", "Centres over the years", "The mean number of supply centres of each power after each year; the first point is the start.", r.showCentres())
	page.Add("orders", "Order success", "The share of orders of each kind that succeeded. A support succeeds if it is matched and not cut.", r.success.Estimates(exhibit.Estimates{By: []string{"order", "agent"}, What: "success"}, orderKinds(), r.agents))
	page.Add("mix", "Order mix", "The share of each kind among the orders of movement phases.", r.mix.Estimates(exhibit.Estimates{By: []string{"order", "agent"}, What: "share"}, orderKinds(), r.agents))
	page.Add("ends", "How games ended", "", r.ends.Bars(exhibit.Bars{X: "end", Y: "games", Labels: r.ends.Labels()}, []string{""}))
	page.Add("relations", "How powers saw each other", "How the power of the row saw the power of the column, from -2 (enemy) to 2 (ally): the mean over movement phases.", r.relations.HeatMap(exhibit.HeatMap{Row: "power", Column: "seen", What: "relation", Rows: powers, Columns: powers}))
	page.Add("refused", "What was rejected", "Orders, messages and relations that could not be used, by reason, over all games.", r.invalid.Grid("reason", r.invalid.Labels(), r.agents))
	caption = ""
	if len(lies.Rows) > 0 {
		caption = "Broken promises and betrayals are above."
	}
	page.Add("moments", "Key moments", caption, r.showMoments())
	return page.All
}

func (r *report) showConduct() exhibit.Grid {
	grid := exhibit.Grid{Columns: append([]string{"agent"}, powerScores()...)}
	for _, a := range r.agents {
		row := []any{a}
		for _, name := range powerScores() {
			if s := r.conduct[pair{a, name}]; s.Episodes() > 0 {
				row = append(row, s)
			} else {
				row = append(row, "–")
			}
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
}

func (r *report) showCentres() exhibit.Curves {
	c := exhibit.Curves{X: "year", Y: "centres"}
	for _, power := range rules.PowerNames() {
		curve := exhibit.Curve{Name: power}
		for _, year := range r.years {
			if s := r.centres[pair{power, fmt.Sprint(year)}]; s != nil {
				curve.Points = append(curve.Points, exhibit.CurvePoint{X: float64(year), Sample: s, Given: !r.later[year]})
			}
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}

func (r *report) showMoments() exhibit.Grid {
	grid := exhibit.Grid{Columns: []string{"episode", "phase", "kind", "what happened"}}
	for _, m := range r.moments {
		grid.Rows = append(grid.Rows, []any{exhibit.Episodes{m.episode}, exhibit.Moment{Episode: m.episode, Frame: m.Phase}, m.Kind, m.Text})
	}
	return grid
}

// showLies returns the table of broken promises and betrayals and its caption. Each of the two has at least half of the rows, if
// there are as many.
func (r *report) showLies() (exhibit.Grid, string) {
	promises, betrayals := r.lies[momentPromise], r.lies[momentBetrayal]
	n := min(len(promises), max(maxReportMoments/2, maxReportMoments-len(betrayals)))
	rows := slices.Concat(promises[:n], betrayals[:min(len(betrayals), maxReportMoments-n)])
	slices.SortStableFunc(rows, func(a, b episodeMoment) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.episode-b.episode) })
	grid := exhibit.Grid{Columns: []string{"episode", "phase", "who", "to whom", "what", "words"}}
	for _, m := range rows {
		grid.Rows = append(grid.Rows, []any{exhibit.Episodes{m.episode}, exhibit.Moment{Episode: m.episode, Frame: m.Phase}, m.who, m.whom, m.Kind, m.Text})
	}
	caption := "A betrayal is an attack on a power that called the attacker friendly or ally. "
	if r.judged {
		caption += "A broken promise is one that the judge found in the messages of a phase, and that the orders of the phase broke."
	} else {
		caption += "Broken promises are not known: no agent in the seat judge looked for promises (params.judge)."
	}
	if all := r.lied[momentPromise] + r.lied[momentBetrayal]; all > len(rows) {
		caption += fmt.Sprintf(" These are the %d gravest of %d", len(rows), all)
		if r.judged {
			caption += fmt.Sprintf(": there are %d broken promises and %d betrayals", r.lied[momentPromise], r.lied[momentBetrayal])
		}
		caption += "."
	}
	return grid, caption
}

// newReplay makes the replay of a game, phase by phase, from its notes and the betrayals of its outcome. It skips notes that it
// cannot read.
func newReplay(played world.Played, notes []world.Note) []exhibit.Exhibit {
	g := readGame(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	b := rules.NewBoard()
	d := drawing.New(b)
	show := exhibit.Replay{Base: d.Base()}
	add := func(title string, s drawing.Scene, err error, lines ...exhibit.FrameLine) {
		frame := exhibit.Frame{Title: title, Lines: lines}
		if err == nil {
			frame.SVG = d.Overlay(s) // a position that cannot be read has only words
		}
		show.Frames = append(show.Frames, frame)
	}
	betrayals := map[string][]keyMoment{}
	if s, ok := summaryOf(played); ok {
		for _, m := range s.Moments {
			if m.Kind == momentBetrayal {
				betrayals[m.Phase] = append(betrayals[m.Phase], m)
			}
		}
	}
	for i := range g.Phases {
		p := &g.Phases[i]
		s, err := phaseScene(b, p)
		add(p.State.Name, s, err, frameLines(p, betrayals[p.State.Name])...)
	}
	if g.End != nil {
		s, err := stateScene(b, "The end: "+g.End.Reason, g.End.State)
		add("The end", s, err, exhibit.FrameLine{Text: endText(g.End)})
	}
	return []exhibit.Exhibit{{Name: "diplomacy-replay", Title: "The game, phase by phase", Show: show, Caption: "Each picture shows the position of a phase and the orders given in it. Colours show their results."}}
}

func endText(e *endRecord) string {
	powers := strings.Join(e.Winners, ", ")
	switch e.Reason {
	case endSolo:
		return "The game ended: " + powers + " won alone."
	case endDraw:
		return "The game ended in a draw between " + powers + "."
	case endConcession:
		return "The game ended: the others conceded it to " + powers + "."
	case endYear:
		return "The game ended with its last year, without a winner."
	case endPhase:
		return "The game ended with its last phase, without a winner."
	case endLastPower:
		return "The game ended. The last power: " + cmp.Or(powers, "none") + "."
	}
	return "The game ended: " + e.Reason + "."
}

// phaseScene is the picture of a phase: the position in which its orders were given, the orders
// and their results. Orders that cannot be read are left out.
func phaseScene(b *rules.Board, p *phaseRecord) (drawing.Scene, error) {
	s, err := stateScene(b, p.State.Name, p.State)
	s.Orders = p.drawnOrders(b, func(o rules.Order) bool { return o.Kind != rules.Waive })
	return s, err
}

// drawnOrders returns the orders that are wanted. Those that cannot be read are left out.
func (p *phaseRecord) drawnOrders(b *rules.Board, wanted func(rules.Order) bool) (out []drawing.Order) {
	for _, w := range rules.Powers() {
		for _, o := range p.Orders[w.String()] {
			if read, err := rules.Parse(b, o.Order); err == nil && wanted(read) {
				out = append(out, drawing.Order{Order: read, Power: w, Dislodged: strings.HasSuffix(p.State.Name, "R"), Results: o.Results})
			}
		}
	}
	return out
}

// moves returns the orders to move.
func (p *phaseRecord) moves(b *rules.Board) []drawing.Order {
	return p.drawnOrders(b, func(o rules.Order) bool { return o.Kind == rules.Move })
}

// drawPosition draws a position, and the moves of the phase before it. A reader can choose the provinces in spots.
func drawPosition(b *rules.Board, title string, state rules.State, moves []drawing.Order, spots []rules.Province) (svg string, err error) {
	s, err := stateScene(b, title, state)
	if err != nil {
		return "", err
	}
	s.Orders, s.Spots = moves, spots
	return drawing.New(b).Draw(s), nil
}

// stateScene is the picture of a position.
func stateScene(b *rules.Board, title string, state rules.State) (drawing.Scene, error) {
	s := drawing.Scene{Title: title, Owners: map[rules.Province]rules.Power{}}
	for _, w := range rules.Powers() {
		for _, c := range state.Centers[w.String()] {
			at, err := rules.ParseLocation(b, c)
			if err != nil {
				return s, fmt.Errorf("show: centers: %w", err)
			}
			s.Owners[b.Province(at)] = w
		}
		for _, text := range state.Units[w.String()] {
			text, dislodged := strings.CutPrefix(text, "*")
			t, at, err := rules.ParseUnit(b, text)
			if err != nil {
				return s, fmt.Errorf("show: units: %w", err)
			}
			s.Units = append(s.Units, drawing.Unit{Unit: rules.Unit{Power: w, Type: t, Location: at}, Dislodged: dislodged})
		}
	}
	return s, nil
}

// frameLines lists what was said, written and done in a phase, in order. What is not addressed to anybody begins with what it is.
func frameLines(p *phaseRecord, betrayals []keyMoment) []exhibit.FrameLine {
	var lines []exhibit.FrameLine
	diary := func(about ...string) {
		for _, e := range p.Diary {
			if slices.Contains(about, e.About) && e.Text != "" {
				lines = append(lines, exhibit.FrameLine{Who: e.Power, Text: "(diary, " + e.About + ") " + e.Text})
			}
		}
	}
	diary(aboutPlan)
	for _, m := range p.Messages {
		lines = append(lines, exhibit.FrameLine{Who: m.From, To: addressee(m.To), Text: m.Text})
	}
	diary(aboutTalks, aboutYears)
	for _, seat := range rules.PowerNames() {
		if orders := p.orderTexts(seat); len(orders) > 0 {
			lines = append(lines, exhibit.FrameLine{Who: seat, Text: "(orders) " + strings.Join(orders, "; ")})
		}
	}
	for _, r := range p.Promises {
		line := exhibit.FrameLine{Who: r.From, Text: "(promise to " + addressee(r.To) + ", " + r.Verdict + ") " + r.Quote}
		if r.Verdict == verdictBroken {
			line.Mark = "breaks its promise " + r.promised()
		}
		lines = append(lines, line)
	}
	for _, m := range betrayals {
		lines = append(lines, exhibit.FrameLine{Who: m.Power, Text: "(betrayal) " + m.Text, Mark: "betrays " + m.Other})
	}
	diary(aboutResults)
	return lines
}

// addressee returns to whom something is said, in words.
func addressee(to string) string {
	if to == toAll {
		return "all"
	}
	return to
}

// tables are the tables of games: orders, press, relations and promises.
func tables() []part.NoteTable {
	phase := part.NoteColumn{Name: "phase", Type: part.NoteText, Doc: "the phase, as F1902M"}
	who := func(name, doc string) []part.NoteColumn {
		return []part.NoteColumn{
			{Name: name, Type: part.NoteText, Doc: doc}, {Name: name + "_agent", Type: part.NoteText, Doc: "the agent in that seat"},
		}
	}
	word := func(name, doc string) part.NoteColumn {
		return part.NoteColumn{Name: name, Type: part.NoteText, Doc: doc}
	}
	return []part.NoteTable{
		{
			Name: "orders", Doc: "an order that counted, with its result",
			Columns: slices.Concat([]part.NoteColumn{phase}, who("power", "the power"), []part.NoteColumn{
				word("order", "the order, as A PAR - BUR"), word("result", "success, or what happened to it, with commas"),
				{Name: "missing", Type: part.NoteBoolean, Doc: "whether the power gave no legal order, so that the unit holds"},
			}),
			Rows: phaseRows(orderRows),
		},
		{
			Name: "press", Doc: "a message of a power",
			Columns: slices.Concat([]part.NoteColumn{phase, {Name: "round", Type: part.NoteInteger, Doc: "the round of talks, from 1"}},
				who("sender", "the power that wrote it"), who("recipient", "the power that it was sent to, or ALL"), []part.NoteColumn{word("text", "the message")}),
			Rows: phaseRows(pressRows),
		},
		{
			Name: "relations", Doc: "how a power saw another one when it gave its orders",
			Columns: slices.Concat([]part.NoteColumn{phase}, who("power", "the power"), who("toward", "the power that it judged"), []part.NoteColumn{word("relation", "enemy, unfriendly, neutral, friendly or ally")}),
			Rows:    phaseRows(relationRows),
		},
		{
			Name: "promises", Doc: "a promise that the judge found",
			Columns: slices.Concat([]part.NoteColumn{phase}, who("power", "the power that gave it"), who("toward", "the power that it was given to, or ALL"), []part.NoteColumn{
				word("promise", "what was promised, as hold"), word("unit", "the unit that it is about"), word("place", "the place that it is about"),
				word("quote", "the words of the message"), word("verdict", "kept, broken or unclear, by the orders"),
			}),
			Rows: phaseRows(promiseRows),
		},
	}
}

// phaseRows makes the rows of each phase of a game.
func phaseRows(of func(p *phaseRecord, agent func(string) string) [][]any) func(world.Played, []world.Note) [][]any {
	return func(p world.Played, notes []world.Note) (all [][]any) {
		g := readGame(notes)
		for i := range g.Phases {
			all = append(all, of(&g.Phases[i], func(power string) string { return p.Spec.Lineup[power] })...)
		}
		return all
	}
}

func orderRows(p *phaseRecord, agent func(string) string) (all [][]any) {
	for _, power := range slices.Sorted(maps.Keys(p.Orders)) {
		for _, o := range p.Orders[power] {
			all = append(all, []any{p.State.Name, power, agent(power), o.Order, strings.Join(o.Results, ", "), o.Missing})
		}
	}
	return all
}

func pressRows(p *phaseRecord, agent func(string) string) (all [][]any) {
	for _, m := range p.Messages {
		all = append(all, []any{m.Phase, m.Round, m.From, agent(m.From), m.To, agent(m.To), m.Text})
	}
	return all
}

func relationRows(p *phaseRecord, agent func(string) string) (all [][]any) {
	for _, power := range slices.Sorted(maps.Keys(p.Relations)) {
		for _, other := range slices.Sorted(maps.Keys(p.Relations[power])) {
			all = append(all, []any{p.State.Name, power, agent(power), other, agent(other), p.Relations[power][other]})
		}
	}
	return all
}

func promiseRows(p *phaseRecord, agent func(string) string) (all [][]any) {
	for _, r := range p.Promises {
		all = append(all, []any{r.Phase, r.From, agent(r.From), r.To, agent(r.To), r.Kind, r.Unit, r.Place, r.Quote, r.Verdict})
	}
	return all
}
