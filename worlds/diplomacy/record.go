package diplomacy

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// The kinds of notes.
const (
	notePhase    = "phase"    // a phaseRecord, when it has been adjudicated
	noteMessage  = "message"  // a messageRecord, with its writer as seat
	noteDiary    = "diary"    // a diaryRecord, with its writer as seat
	noteRefused  = "refused"  // a refusedRecord, with its writer as seat
	notePromises = "promises" // a list of promiseRecord, checked
	noteEnd      = "end"      // an endRecord
)

// phaseRecord is one phase that was played.
type phaseRecord struct {
	// State is the position in which the orders were given. Its name is the phase.
	State rules.State `json:"state"`
	// Orders are the orders that count, by power, with their results.
	Orders map[string][]orderRecord `json:"orders"`
	// Removed are the units that were removed without an order.
	Removed []string `json:"removed,omitempty"`
	// Relations are how powers saw each other when they gave their orders.
	Relations map[string]map[string]string `json:"relations,omitempty"`
	// Goals are their goals.
	Goals map[string][]string `json:"goals,omitempty"`
	// Reasons are their reasons for the orders.
	Reasons map[string]string `json:"reasons,omitempty"`
	// Votes are how they voted on ending the game, where they did.
	Votes map[string]string `json:"votes,omitempty"`

	// readGame adds these from other notes.
	Messages []messageRecord `json:"-"`
	Diary    []diaryRecord   `json:"-"`
	Promises []promiseRecord `json:"-"`
}

// orderRecord is one order and its result.
type orderRecord struct {
	Order string `json:"order"`
	// Results are those of rules.Result.Codes.
	Results []string `json:"results"`
	// Missing means that the power gave no legal order, so the unit holds.
	Missing bool `json:"missing,omitempty"`
}

// orderTexts lists a power's orders, each with its failures: a success is not mentioned, so
// that players do not learn to hold.
func (p *phaseRecord) orderTexts(power string) []string {
	var texts []string
	for _, o := range p.Orders[power] {
		failed := slices.DeleteFunc(slices.Clone(o.Results), func(code string) bool { return code == rules.Success.String() })
		text := o.Order
		if len(failed) > 0 {
			text += " (" + strings.Join(failed, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

// messageRecord is a message of a power.
type messageRecord struct {
	Phase string `json:"phase"`
	Round int    `json:"round"`
	From  string `json:"from,omitempty"` // the note's seat
	To    string `json:"to"`             // a power, or ALL
	Text  string `json:"text"`
}

// The subjects of a diaryRecord.
const (
	aboutStart   = "start"   // the first goals and relations
	aboutPlan    = "plan"    // before the talks
	aboutTalks   = "talks"   // after them
	aboutResults = "results" // after the orders were carried out
	aboutYears   = "years"   // a summary of earlier entries
)

// diaryRecord is something a power wrote in its diary.
type diaryRecord struct {
	Phase string `json:"phase"`
	Power string `json:"power,omitempty"` // the note's seat
	About string `json:"about"`
	Text  string `json:"text,omitempty"`
	// Relations and Goals are those it has then, where they changed.
	Relations map[string]string `json:"relations,omitempty"`
	Goals     []string          `json:"goals,omitempty"`
}

// refusedRecord is something that a power wrote and that cannot be used: an illegal order, or a message
// that cannot be delivered.
type refusedRecord struct {
	Phase  string `json:"phase"`
	What   string `json:"what"`   // order, message, relation
	Reason string `json:"reason"` // in a word or two
	Text   string `json:"text,omitempty"`
	Why    string `json:"why,omitempty"`
}

// promiseRecord is a promise that the judge found, and whether it was kept.
type promiseRecord struct {
	Phase string `json:"phase"`
	From  string `json:"from"`
	To    string `json:"to"` // a power, or ALL
	Kind  string `json:"kind"`
	Unit  string `json:"unit,omitempty"`
	Place string `json:"place,omitempty"`
	Quote string `json:"quote,omitempty"`
	// Verdict is kept, broken or unclear, from the orders of the phase.
	Verdict string `json:"verdict"`
}

// promised returns what was promised, after "promised": to stay out of ENG.
func (p *promiseRecord) promised() string {
	switch p.Kind {
	case promiseStayOut:
		return "to stay out of " + p.Place
	case promiseNoAttack:
		return "not to attack"
	case promiseMove:
		return "to move " + p.Unit + " to " + p.Place
	}
	text := "to " + p.Kind + " " + p.Unit
	if p.Place != "" && p.Kind != promiseHold {
		text += " to " + p.Place
	}
	return text
}

// The verdicts on a promise.
const (
	verdictKept    = "kept"
	verdictBroken  = "broken"
	verdictUnclear = "unclear"
)

// endRecord is how a game ended.
type endRecord struct {
	State   rules.State `json:"state"` // the last position
	Reason  string      `json:"reason"`
	Winners []string    `json:"winners,omitempty"`
	// Votes are the votes that ended it, if any.
	Votes map[string]string `json:"votes,omitempty"`
}

// The reasons for an end.
const (
	endSolo       = "solo"
	endDraw       = "draw"
	endConcession = "concession"
	endYear       = "year"
	endPhase      = "phase"
	endLastPower  = "last power"
)

// gameRecord is a whole game, from its notes.
type gameRecord struct {
	Phases []phaseRecord
	End    *endRecord // nil: the game is not over
}

// readGame builds a game from the notes of an episode, in the order of its transcript. The notes
// may come from anywhere: it skips those that it cannot read.
func readGame(notes []world.Note) gameRecord {
	var g gameRecord
	at := map[string]int{} // phases by name
	for _, n := range notes {
		switch n.Kind {
		case notePhase:
			if p, ok := decodeNote[phaseRecord](n); ok && p.State.Name != "" {
				at[p.State.Name] = len(g.Phases)
				g.Phases = append(g.Phases, p)
			}
		case noteEnd:
			if e, ok := decodeNote[endRecord](n); ok {
				g.End = &e
			}
		}
	}
	to := func(phase string, ok bool, add func(p *phaseRecord)) {
		if i, played := at[phase]; ok && played {
			add(&g.Phases[i])
		}
	}
	for _, n := range notes { // those of a phase come before its own
		switch n.Kind {
		case noteMessage:
			m, ok := decodeNote[messageRecord](n)
			m.From = n.Seat
			to(m.Phase, ok, func(p *phaseRecord) { p.Messages = append(p.Messages, m) })
		case noteDiary:
			e, ok := decodeNote[diaryRecord](n)
			e.Power = n.Seat
			to(e.Phase, ok, func(p *phaseRecord) { p.Diary = append(p.Diary, e) })
		case notePromises:
			list, _ := decodeNote[[]promiseRecord](n)
			for _, r := range list {
				to(r.Phase, true, func(p *phaseRecord) { p.Promises = append(p.Promises, r) })
			}
		}
	}
	return g
}

func decodeNote[T any](n world.Note) (v T, ok bool) {
	ok = json.Unmarshal(n.Data, &v) == nil
	return v, ok
}

// gameSummary is the data of an outcome.
type gameSummary struct {
	// Ended is the reason of the end, Last the last phase, and Winners the powers that won or
	// share the draw.
	Ended   string   `json:"ended"`
	Last    string   `json:"last"`
	Winners []string `json:"winners,omitempty"`
	Scoring string   `json:"scoring"`
	Press   bool     `json:"press"`

	// Powers is what each power did.
	Powers map[string]*powerStats `json:"powers"`
	// Centres are the centres of each power at the start and after each year.
	Centres []centreCount `json:"centres"`
	// Relations is how each power saw each other one, from -2 (enemy) to 2 (ally), the mean
	// over movement phases.
	Relations map[string]map[string]float64 `json:"relations,omitempty"`
	// Moments are the key moments.
	Moments []keyMoment `json:"moments,omitempty"`
	// Judged counts the phases whose messages the judge read for promises, and Unjudged those without its answer.
	Judged   int `json:"judged,omitempty"`
	Unjudged int `json:"unjudged,omitempty"`
}

// powerStats is what one power did in a game.
type powerStats struct {
	Score    float64 `json:"score"`
	Centres  int     `json:"centres"`
	Units    int     `json:"units"`
	Survived bool    `json:"survived"`
	Solo     bool    `json:"solo,omitempty"`
	// Out is the year in which it lost its last unit and centre, or 0.
	Out int `json:"out,omitempty"`
	// Welfare is the sum over winters of its centres without a unit.
	Welfare int `json:"welfare,omitempty"`

	// Orders counts its orders by kind and result.
	Orders map[string]map[string]int `json:"orders,omitempty"`
	// Missing counts units without a legal order.
	Missing int `json:"missing,omitempty"`
	// Refused counts what could not be used, by kind and reason: "order: unreadable".
	Refused map[string]int `json:"refused,omitempty"`
	// Mended counts orders that were legal at the second attempt.
	Mended int `json:"mended,omitempty"`
	// Failed counts calls without an answer, by label.
	Failed map[string]int `json:"failed,omitempty"`

	Private int `json:"private,omitempty"` // messages
	Public  int `json:"public,omitempty"`
	Cut     int `json:"cut,omitempty"` // messages that were too long

	Allied   int `json:"allied,omitempty"`   // movement phases in which it and another called each other friendly or ally, for each
	Betrayed int `json:"betrayed,omitempty"` // attacks on a power that called it friendly or ally
	// Victims counts the same by the power that was attacked.
	Victims map[string]int `json:"victims,omitempty"`

	Kept    int `json:"kept,omitempty"` // promises
	Broken  int `json:"broken,omitempty"`
	Unclear int `json:"unclear,omitempty"`
	// BrokenTo counts broken promises by the power that they were given to, or ALL.
	BrokenTo map[string]int `json:"broken_to,omitempty"`
}

func newPowerStats() *powerStats {
	return &powerStats{Orders: map[string]map[string]int{}, Refused: map[string]int{}, Failed: map[string]int{}}
}

// centreCount is the centres of the powers after a year; the year before the first is the start.
type centreCount struct {
	Year    int            `json:"year"`
	Centres map[string]int `json:"centres"`
}

// The kinds of moments that are lies.
const (
	momentBetrayal = "betrayal"
	momentPromise  = "broken promise"
)

// keyMoment is a key moment.
type keyMoment struct {
	Phase string `json:"phase"`
	// Kind is betrayal, broken promise, dislodged, centre, out, surge, collapse, solo, draw or concession.
	Kind  string `json:"kind"`
	Power string `json:"power"`           // the power that did it, or that it happened to
	Other string `json:"other,omitempty"` // to whom; ALL: a promise to all
	Text  string `json:"text"`
	// Weight is its importance, from 1 to 10.
	Weight int `json:"weight"`
}

// tried returns the number of orders of a kind, and how many succeeded.
func (p *powerStats) tried(kind string) (n, succeeded int) {
	for code, count := range p.Orders[kind] {
		n += count
		if code == "success" {
			succeeded += count
		}
	}
	return n, succeeded
}

// active is tried for moves, supports and convoys together.
func (p *powerStats) active() (n, succeeded int) {
	for _, kind := range []string{"move", "support", "convoy"} {
		a, b := p.tried(kind)
		n, succeeded = n+a, succeeded+b
	}
	return n, succeeded
}

// written returns the number of orders that it wrote, and how many of them were illegal.
func (p *powerStats) written() (n, illegal int) {
	for reason, count := range p.Refused {
		if strings.HasPrefix(reason, "order: ") {
			illegal += count
		}
	}
	return p.given() + illegal, illegal
}

// given returns the number of legal orders that it wrote.
func (p *powerStats) given() int {
	n := 0
	for _, codes := range p.Orders {
		for _, count := range codes {
			n += count
		}
	}
	return n
}
