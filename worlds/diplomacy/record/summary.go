package record

import "strings"

// Summary is the data of an outcome: what a game came to, in short.
type Summary struct {
	// Ended is why, Last the last phase that was played, and Winners who won or shares the draw.
	Ended   string   `json:"ended"`
	Last    string   `json:"last"`
	Winners []string `json:"winners,omitempty"`
	Scoring string   `json:"scoring"`
	Press   bool     `json:"press"`

	// Powers are what each did.
	Powers map[string]*Power `json:"powers"`
	// Centres are the centres of each power at the start and after each year.
	Centres []Count `json:"centres"`
	// Relations is how each power saw each other one, from -2 (enemy) to 2 (ally), the mean
	// over movement phases.
	Relations map[string]map[string]float64 `json:"relations,omitempty"`
	// Moments are what is worth looking at.
	Moments []Moment `json:"moments,omitempty"`
	// Unjudged are phases whose promises the judge gave no answer about.
	Unjudged int `json:"unjudged,omitempty"`
}

// Power is what one power did in a game.
type Power struct {
	Score    float64 `json:"score"`
	Centres  int     `json:"centres"`
	Units    int     `json:"units"`
	Survived bool    `json:"survived"`
	Solo     bool    `json:"solo,omitempty"`
	// Out is the year in which it had nothing left, or 0.
	Out int `json:"out,omitempty"`
	// Welfare is the sum over winters of centres that no unit was kept for.
	Welfare int `json:"welfare,omitempty"`

	// Orders are by kind: how many, and how many of them came to what.
	Orders map[string]map[string]int `json:"orders,omitempty"`
	// Missing are units that were told nothing legal.
	Missing int `json:"missing,omitempty"`
	// Refused are what it wrote and was not taken, by what and reason: "order: unreadable".
	Refused map[string]int `json:"refused,omitempty"`
	// Mended are orders that were right when they were asked for again.
	Mended int `json:"mended,omitempty"`
	// Failed are calls without an answer, by label.
	Failed map[string]int `json:"failed,omitempty"`

	Private int `json:"private,omitempty"` // messages
	Public  int `json:"public,omitempty"`
	Cut     int `json:"cut,omitempty"` // messages that were too long

	Allied   int `json:"allied,omitempty"`   // movement phases in which it and another called each other friendly or ally, for each
	Betrayed int `json:"betrayed,omitempty"` // times it struck somebody who called it friendly or ally
	Kept     int `json:"kept,omitempty"`     // promises
	Broken   int `json:"broken,omitempty"`
	Unclear  int `json:"unclear,omitempty"`
}

// Count is the centres of the powers after a year; the year before the first is the start.
type Count struct {
	Year    int            `json:"year"`
	Centres map[string]int `json:"centres"`
}

// Moment is something that happened.
type Moment struct {
	Phase string `json:"phase"`
	// Kind is betrayal, dislodged, centre, out, surge, collapse, solo, draw or concession.
	Kind  string `json:"kind"`
	Power string `json:"power"`           // who did it, or whom it befell
	Other string `json:"other,omitempty"` // to whom
	Text  string `json:"text"`
	// Weight is how much it matters, from 1 to 10.
	Weight int `json:"weight"`
}

// Tried is how many orders of a kind there were, and how many succeeded.
func (p *Power) Tried(kind string) (n, succeeded int) {
	for code, count := range p.Orders[kind] {
		n += count
		if code == "success" {
			succeeded += count
		}
	}
	return n, succeeded
}

// Active is Tried over all orders but holds: moves, supports and convoys.
func (p *Power) Active() (n, succeeded int) {
	for _, kind := range []string{"move", "support", "convoy"} {
		a, b := p.Tried(kind)
		n, succeeded = n+a, succeeded+b
	}
	return n, succeeded
}

// Written is how many orders it wrote, and how many of them were not legal.
func (p *Power) Written() (n, illegal int) {
	for reason, count := range p.Refused {
		if strings.HasPrefix(reason, "order: ") {
			illegal += count
		}
	}
	return p.Given() + illegal, illegal
}

// Given is how many orders counted: those it wrote itself and that were legal.
func (p *Power) Given() int {
	n := 0
	for _, codes := range p.Orders {
		for _, count := range codes {
			n += count
		}
	}
	return n
}
