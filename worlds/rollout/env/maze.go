package env

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"parley/worlds/rollout/rules"
)

// mazeParams are what it is made with.
type mazeParams struct {
	Size     int     `json:"size"`      // rooms a side
	Moves    int     `json:"moves"`     // when it is cut off; 0: four for each room
	StepCost float64 `json:"step_cost"` // taken from the reward of each move
}

// maze is a square of rooms with one way between any two.
type maze struct {
	mazeParams
	conversation
	open  map[[2]int]bool // pairs of rooms with a door: see passage
	at    int
	moves int
}

func newMaze(params json.RawMessage) (Env, error) {
	p := mazeParams{Size: 4}
	err := readParams("maze", params, &p, bound{"size", &p.Size, 2, 30}, bound{"moves", &p.Moves, 0, 100_000})
	if err == nil && !(p.StepCost >= 0 && p.StepCost <= 1) {
		err = fmt.Errorf("env: maze: params.step_cost: %v: want 0 to 1", p.StepCost)
	}
	if p.Moves == 0 {
		p.Moves = 4 * p.Size * p.Size
	}
	return &maze{mazeParams: p}, err
}

// compass returns the four directions in the order in which they are listed.
func compass() []struct {
	name   string
	dx, dy int
} {
	return []struct {
		name   string
		dx, dy int
	}{{"north", 0, -1}, {"east", 1, 0}, {"south", 0, 1}, {"west", -1, 0}}
}

// passage returns the key of two rooms that are side by side.
func passage(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// beside is the room in a direction, if there is one.
func (m *maze) beside(room, dx, dy int) (int, bool) {
	x, y := room%m.Size+dx, room/m.Size+dy
	return y*m.Size + x, x >= 0 && y >= 0 && x < m.Size && y < m.Size
}

func (m *maze) Reset(seed int64) {
	m.at, m.moves = 0, 0
	m.dig(newRand(seed))
	m.conversation = newConversation("You are in a maze of rooms. Answer with the direction you walk: north, east, south or west. "+
		"The way out is in the room furthest to the south-east.", m.look())
}

// dig opens doors until every room can be reached, in a random walk.
func (m *maze) dig(r *rand.Rand) {
	m.open = map[[2]int]bool{}
	seen := map[int]bool{0: true}
	path := []int{0}
	for len(path) > 0 {
		room := path[len(path)-1]
		var next []int
		for _, d := range compass() {
			if to, ok := m.beside(room, d.dx, d.dy); ok && !seen[to] {
				next = append(next, to)
			}
		}
		if len(next) == 0 {
			path = path[:len(path)-1]
			continue
		}
		to := next[r.IntN(len(next))]
		m.open[passage(room, to)], seen[to] = true, true
		path = append(path, to)
	}
}

// look describes the position and its doors.
func (m *maze) look() string {
	var doors []string
	for _, d := range compass() {
		if to, ok := m.beside(m.at, d.dx, d.dy); ok && m.open[passage(m.at, to)] {
			doors = append(doors, d.name)
		}
	}
	return fmt.Sprintf("You are in column %d, row %d of %d by %d. There are doors to the %s.",
		m.at%m.Size+1, m.at/m.Size+1, m.Size, m.Size, strings.Join(doors, " and the "))
}

var directionRE = regexp.MustCompile(`(?i)\b(north|east|south|west)\b`)

func (m *maze) Step(action rules.Action) rules.Result {
	if m.done {
		return result(0, true, false)
	}
	text := onlyText(action)
	m.moves++
	said := m.walk(text)
	won := m.at == m.Size*m.Size-1
	m.done = won || m.moves == m.Moves
	reward := 0.0
	if won {
		reward = 1
	}
	if !m.done {
		m.answered(text, said+" "+m.look())
	}
	return result(reward-m.StepCost, won, m.done && !won)
}

// walk moves in the last direction in text, and says how that went.
func (m *maze) walk(text string) string {
	named := directionRE.FindAllString(text, -1)
	if len(named) == 0 {
		return "That is no direction."
	}
	last := strings.ToLower(named[len(named)-1])
	for _, d := range compass() {
		if to, ok := m.beside(m.at, d.dx, d.dy); d.name == last && ok && m.open[passage(m.at, to)] {
			m.at = to
			return "You walk " + last + "."
		}
	}
	return "There is a wall to the " + last + "."
}
