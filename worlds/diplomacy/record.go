// Part record defines the notes of a game of Diplomacy and the data of its outcome, and reads
// a whole game back from its notes.
//
// Read needs only the notes of one episode. It accepts notes from anywhere and skips broken ones.

package diplomacy

import (
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// The kinds of notes.
const (
	notePhase    = "phase"    // a Phase, when it has been adjudicated
	noteMessage  = "message"  // a Message, with its writer as seat
	noteDiary    = "diary"    // an Entry, with its writer as seat
	noteRefused  = "refused"  // a Refused, with its writer as seat
	notePromises = "promises" // a list of Promise, checked
	noteEnd      = "end"      // an End
)

// Phase is one phase that was played.
type Phase struct {
	// State is the position in which the orders were given. Its name is the phase.
	State rules.State `json:"state"`
	// Orders are the orders that count, by power, with their results.
	Orders map[string][]Order `json:"orders"`
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

	// Read adds these from other notes.
	Messages []Message `json:"-"`
	Diary    []Entry   `json:"-"`
	Refused  []Refused `json:"-"`
	Promises []Promise `json:"-"`
}

// Order is one order and its result.
type Order struct {
	Order string `json:"order"`
	// Results are the codes of package rules.
	Results []string `json:"results"`
	// Missing means that the power gave no legal order, so the unit holds.
	Missing bool `json:"missing,omitempty"`
}

// OrderTexts lists a power's orders, each with its failures: a success is not mentioned, so
// that players do not learn to hold.
func (p *Phase) OrderTexts(power string) []string {
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

// Message is a message of a power.
type Message struct {
	Phase string `json:"phase"`
	Round int    `json:"round"`
	From  string `json:"from,omitempty"` // the note's seat
	To    string `json:"to"`             // a power, or ALL
	Text  string `json:"text"`
}

// The subjects of an Entry.
const (
	AboutStart   = "start"   // the first goals and relations
	aboutPlan    = "plan"    // before the talks
	AboutTalks   = "talks"   // after them
	AboutResults = "results" // after the orders were carried out
	AboutYears   = "years"   // a summary of earlier entries
)

// Entry is something a power wrote in its diary.
type Entry struct {
	Phase string `json:"phase"`
	Power string `json:"power,omitempty"` // the note's seat
	About string `json:"about"`
	Text  string `json:"text,omitempty"`
	// Relations and Goals are those it has then, where they changed.
	Relations map[string]string `json:"relations,omitempty"`
	Goals     []string          `json:"goals,omitempty"`
}

// Refused is something that a power wrote and that cannot be used: an illegal order, or a message
// that cannot be delivered.
type Refused struct {
	Phase  string `json:"phase"`
	Power  string `json:"power,omitempty"` // the note's seat
	What   string `json:"what"`            // order, message, relation
	Reason string `json:"reason"`          // in a word or two
	Text   string `json:"text,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Promise is a promise that the judge found, and whether it was kept.
type Promise struct {
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

// The verdicts on a promise.
const (
	recordKept = "kept"
	broken     = "broken"
	unclear    = "unclear"
)

// End is how a game ended.
type End struct {
	State   rules.State `json:"state"` // the last position
	Reason  string      `json:"reason"`
	Winners []string    `json:"winners,omitempty"`
	// Votes are the votes that ended it, if any.
	Votes map[string]string `json:"votes,omitempty"`
}

// The reasons for an end.
const (
	recordSolo  = "solo"
	recordDraw  = "draw"
	concession  = "concession"
	recordYear  = "year"
	recordUntil = "phase"
	recordAlone = "last power"
)
