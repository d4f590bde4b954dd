package diplomacy

import (
	"strings"

	"parley/world"
)

// recordSummary is the data of an outcome.
type recordSummary struct {
	// Ended is the reason of the end, Last the last phase, and Winners the powers that won or
	// share the draw.
	Ended   string   `json:"ended"`
	Last    string   `json:"last"`
	Winners []string `json:"winners,omitempty"`
	Scoring string   `json:"scoring"`
	Press   bool     `json:"press"`

	// Powers is what each power did.
	Powers map[string]*recordPower `json:"powers"`
	// Centres are the centres of each power at the start and after each year.
	Centres []recordCount `json:"centres"`
	// Relations is how each power saw each other one, from -2 (enemy) to 2 (ally), the mean
	// over movement phases.
	Relations map[string]map[string]float64 `json:"relations,omitempty"`
	// Moments are the key moments.
	Moments []Moment `json:"moments,omitempty"`
	// Unjudged counts the phases without an answer of the judge.
	Unjudged int `json:"unjudged,omitempty"`
}

// scoreBounds returns the bounds of a power's score.
func scoreBounds(scoring string) world.Bounds {
	if scoring == scoreShare || scoring == scoreDraw {
		return world.Share()
	}
	return world.AtLeast0()
}

// The scorings.
const (
	scoreGame    = "game"
	scoreShare   = "share"
	scoreDraw    = "draw"
	scoreWelfare = "welfare"
)

// recordPower is what one power did in a game.
type recordPower struct {
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
}

// recordCount is the centres of the powers after a year; the year before the first is the start.
type recordCount struct {
	Year    int            `json:"year"`
	Centres map[string]int `json:"centres"`
}

// Moment is a key moment.
type Moment struct {
	Phase string `json:"phase"`
	// Kind is betrayal, dislodged, centre, out, surge, collapse, solo, draw or concession.
	Kind  string `json:"kind"`
	Power string `json:"power"`           // the power that did it, or that it happened to
	Other string `json:"other,omitempty"` // to whom
	Text  string `json:"text"`
	// Weight is its importance, from 1 to 10.
	Weight int `json:"weight"`
}

// Tried returns the number of orders of a kind, and how many succeeded.
func (p *recordPower) Tried(kind string) (n, succeeded int) {
	for code, count := range p.Orders[kind] {
		n += count
		if code == "success" {
			succeeded += count
		}
	}
	return n, succeeded
}

// Active is Tried for moves, supports and convoys together.
func (p *recordPower) Active() (n, succeeded int) {
	for _, kind := range []string{"move", "support", "convoy"} {
		a, b := p.Tried(kind)
		n, succeeded = n+a, succeeded+b
	}
	return n, succeeded
}

// Written returns the number of orders that it wrote, and how many of them were illegal.
func (p *recordPower) Written() (n, illegal int) {
	for reason, count := range p.Refused {
		if strings.HasPrefix(reason, "order: ") {
			illegal += count
		}
	}
	return p.Given() + illegal, illegal
}

// Given returns the number of legal orders that it wrote.
func (p *recordPower) Given() int {
	n := 0
	for _, codes := range p.Orders {
		for _, count := range codes {
			n += count
		}
	}
	return n
}
