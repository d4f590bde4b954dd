package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// Season is a time of the year.
type Season uint8

// The seasons. In winter units are built and removed.
const (
	Spring Season = iota
	Fall
	Winter
)

// String is the season's name.
func (s Season) String() string { return [...]string{"spring", "fall", "winter"}[min(s, Winter)] }

// Step is what is done in a phase.
type Step uint8

// The steps of a season.
const (
	Movement Step = iota
	Retreats
	Adjustments
)

// String is the step's name.
func (s Step) String() string {
	return [...]string{"movement", "retreat", "adjustment"}[min(s, Adjustments)]
}

// Phase is a step of a season of a year.
type Phase struct {
	Year   int
	Season Season
	Step   Step
}

// First is the phase the game begins with.
func First() Phase { return Phase{Year: 1901} }

// String is the phase's name: S1901M, F1901R, W1901A.
func (p Phase) String() string {
	return fmt.Sprintf("%c%d%c", "SFW"[min(p.Season, Winter)], p.Year, "MRA"[min(p.Step, Adjustments)])
}

// ParsePhase reads the name of a phase.
func ParsePhase(name string) (Phase, error) {
	bad := fmt.Errorf("rules: phase %q: a phase is written like S1901M, F1901R or W1901A", name)
	if len(name) < 3 {
		return Phase{}, bad
	}
	season, step := strings.IndexByte("SFW", name[0]), strings.IndexByte("MRA", name[len(name)-1])
	year, err := strconv.Atoi(name[1 : len(name)-1])
	p := Phase{Year: year, Season: Season(max(season, 0)), Step: Step(max(step, 0))}
	if err != nil || season < 0 || step < 0 || year < 0 || !p.sound() || p.String() != name {
		return Phase{}, bad
	}
	return p, nil
}

// sound reports whether the phase exists: winter has adjustments, and only winter.
func (p Phase) sound() bool { return (p.Season == Winter) == (p.Step == Adjustments) }
