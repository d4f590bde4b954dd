package rollout

import (
	"regexp"
	"slices"
)

var (
	exitsSeen = regexp.MustCompile(`There are doors to the ((?:north|east|south|west)(?: and the (?:north|east|south|west))*)\.\s*$`)
	exitName  = regexp.MustCompile(`north|east|south|west`)
	walked    = regexp.MustCompile(`^You walk (north|east|south|west)\.`)
)

// walk follows the wall on its right, which leads through any maze without loops. Sometimes it takes any door,
// or none.
func (t *turn) walk() (string, bool) {
	m := exitsSeen.FindStringSubmatch(t.asked())
	if m == nil {
		return "", false
	}
	doors := exitName.FindAllString(m[1], -1)
	compass := []string{"north", "east", "south", "west"}
	facing := t.facing()
	switch {
	case facing == "" || t.fails(t.skill):
		return t.heading(t.pick(doors...)), true
	case t.fails(0.9 + 0.1*t.skill):
		return t.heading(t.pick(compass...)), true
	}
	ahead := slices.Index(compass, facing)
	for _, side := range []int{1, 0, 3, 2} { // right, ahead, left, back
		if to := compass[(ahead+side)%4]; slices.Contains(doors, to) {
			return t.heading(to), true
		}
	}
	return t.heading(doors[0]), true // not reached: there is always a door
}

// facing returns the direction of the last move that succeeded, or "".
func (t *turn) facing() string {
	for _, text := range slices.Backward(t.heard) {
		if m := walked.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

func (t *turn) heading(to string) string {
	return t.pick("", "", "I go ", "I try the door to the ", "Let me see what is there: ") + to
}
