// Part standin plays the powers of Diplomacy for the simulated provider, and judges their promises.
//
// An answer depends only on the arguments of Play, and any prompt gets one. How well a model's name plays is made up.

package diplomacy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
	"parley/worlds/diplomacy/rules"
)

// Texts by which the stand-in recognises a question. They are in the lines of messages and in the templates of package
// prompt.
const (
	// Game is in the rules, and in prompts without them.
	Game = "game of Diplomacy"
	// standinLine is a message that was written: by whom, to whom, and what.
	standinLine = "> %s to %s: %s"
	// youAre begins the line that names the power.
	youAre = "You are "
	// standinSaid is above what was said this turn, and Round begins the line with the number of the round.
	standinSaid  = "Said this turn:"
	standinRound = "Round "
)

// playStandin plays a power, and judges promises. It recognises the game by its name or by the position in a prompt, and the question by the
// properties of its schema: not every wire format has the name of a schema. It reads the options of its units in the
// prompt.
//
// It attacks near centres, supports its own attacks, writes to its neighbours, keeps most of its promises, and
// sometimes gives an illegal order: small models most often, large ones least.
func playStandin(model string, req *llm.Request, seed uint64) (string, bool) {
	var form struct{ Properties map[string]any }
	if req.Schema == nil || json.Unmarshal(req.Schema.JSON, &form) != nil || !slices.ContainsFunc(req.Messages, ofGame) {
		return "", false
	}
	e := readEnvoy(model, req, seed)
	answer := map[string]any{}
	for _, p := range parts() {
		if form.Properties[p.name] != nil {
			answer[p.name] = p.write(e, form.Properties)
		}
	}
	if len(answer) == 0 || len(answer) != len(form.Properties) {
		return "", false
	}
	b, err := json.Marshal(answer)
	return string(b), err == nil
}

// ofGame reports whether a message is about the game.
func ofGame(m llm.Message) bool {
	text := m.Text()
	return strings.Contains(text, Game) || position.MatchString(text)
}

// part is a property of an answer, and how it is written.
type part struct {
	name  string
	write func(e *envoy, form map[string]any) any
}

// parts are the properties of all answers, in the order in which they are drawn.
func parts() []part {
	return []part{
		{"diary", func(e *envoy, _ map[string]any) any { return e.diary() }},
		{"relations", func(e *envoy, form map[string]any) any {
			if form["diary"] == nil { // at the start of the game
				return e.feelings(3)
			}
			return e.feelings(1)
		}},
		{"goals", func(e *envoy, _ map[string]any) any { return e.goals() }},
		{"messages", func(e *envoy, _ map[string]any) any { return e.messages() }},
		{"text", func(e *envoy, _ map[string]any) any { return e.diary() }},
		{"reason", func(e *envoy, _ map[string]any) any { return e.reason() }},
		{"orders", func(e *envoy, _ map[string]any) any { return e.orders() }},
		{"vote", func(e *envoy, _ map[string]any) any { return e.vote() }},
		{"promises", func(e *envoy, _ map[string]any) any { return promises(e.prompt) }},
	}
}

// envoy is a player and its prompt.
type envoy struct {
	*worldsim.Dice
	model  string
	power  string   // France
	others []string // that are still in the game
	prompt string   // the message to answer
	units  []post
}

// post is a unit and its moves.
type post struct {
	unit  string
	moves []way
}

// way is a move: its target, whether that is a centre to take, and the units that can support it.
type way struct {
	to     string
	prize  bool
	taken  bool // a unit is there
	helped []string
}

func readEnvoy(model string, req *llm.Request, seed uint64) *envoy {
	e := &envoy{Dice: worldsim.NewDice(seed), model: strings.ToLower(model)}
	for _, m := range req.Messages {
		text := m.Text()
		if m.Role == llm.RoleUser {
			e.prompt = text
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			name, rest, found := strings.Cut(line, ": ")
			switch {
			case strings.HasPrefix(line, youAre) && e.power == "":
				e.power, _, _ = strings.Cut(strings.TrimPrefix(line, youAre), ".")
			case m.Role == llm.RoleSystem && found && strings.Contains(rest, briefCentres) && isPower(name) && !slices.Contains(e.others, name):
				e.others = append(e.others, name)
			}
		}
	}
	e.others = slices.DeleteFunc(e.others, func(name string) bool { return name == e.power })
	e.readUnits()
	return e
}

func isPower(name string) bool { return slices.Contains(names(), name) }

func names() (all []string) {
	for _, w := range rules.Powers() {
		all = append(all, w.Name())
	}
	return all
}

var (
	unitLine      = regexp.MustCompile(`^([AF] [A-Z]{3}(?:/[A-Z]C)?), (?:inland|coast|sea)`)
	helper        = regexp.MustCompile(`\+([AF] [A-Z]{3}(?:/[A-Z]C)?)`)
	builds        = regexp.MustCompile(`[AF] [A-Z]{3}(?:/[A-Z]C)? [BD]\b`)
	retreat       = regexp.MustCompile(`(?m)^([AF] [A-Z]{3}(?:/[A-Z]C)?)` + canRetreat + `(.*)$`)
	position      = regexp.MustCompile(`(?m)^(?:` + strings.Join(names(), "|") + `): .*` + briefCentres)
	standinNumber = regexp.MustCompile(strings.ReplaceAll(mayBuild+"|"+mustRemove, "%d", `(\d+)`))
)

func (e *envoy) readUnits() {
	for line := range strings.Lines(e.prompt) {
		line = strings.TrimRight(line, "\n")
		if m := unitLine.FindStringSubmatch(line); m != nil {
			e.units = append(e.units, post{unit: m[1]})
			continue
		}
		list, ok := strings.CutPrefix(line, " "+briefMoves+": ")
		if !ok || len(e.units) == 0 {
			continue
		}
		u := &e.units[len(e.units)-1]
		for item := range strings.SplitSeq(list, ", ") {
			to, _, _ := strings.Cut(item, " ")
			code, owner, prize := strings.Cut(to, "*")
			code, _, _ = strings.Cut(code, "[")
			if len(code) < 3 {
				continue // not a location: a custom prompt
			}
			own := len(e.power) >= 3 && strings.HasPrefix(owner, e.power[:3])
			u.moves = append(u.moves, way{to: code, prize: prize && !own, taken: strings.Contains(item, "["), helped: helpers(item)})
		}
	}
}

func helpers(text string) []string {
	var list []string
	for _, m := range helper.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// orders returns the orders of the phase.
func (e *envoy) orders() []string {
	if retreats := retreat.FindAllStringSubmatch(e.prompt, -1); retreats != nil {
		return e.retreats(retreats)
	}
	if m := standinNumber.FindStringSubmatch(e.prompt); m != nil && len(e.units) == 0 {
		return e.adjustments(int((m[1] + m[2])[0] - '0'))
	}
	return e.movement()
}

func (e *envoy) retreats(units [][]string) []string {
	orders := []string{}
	for _, m := range units {
		var to []string
		for item := range strings.SplitSeq(m[2], ", ") {
			code, _, _ := strings.Cut(item, "*")
			code, _, _ = strings.Cut(code, "[")
			to = append(to, code)
		}
		if to[0] == "none" || e.Float() < 0.1 {
			orders = append(orders, m[1]+" D")
			continue
		}
		orders = append(orders, m[1]+" R "+e.Pick(to...))
	}
	return orders
}

func (e *envoy) adjustments(n int) []string {
	orders := []string{}
	used := map[string]bool{}
	list := builds.FindAllString(e.prompt, -1)
	for tries := 0; len(orders) < n && len(list) > 0 && tries < 40; tries++ {
		o := e.Pick(list...)
		if at := o[2:5]; !used[at] {
			used[at] = true
			orders = append(orders, o)
		}
	}
	if strings.Contains(e.prompt, "WAIVE") && e.Float() < 0.05 && len(orders) > 0 {
		orders[0] = "WAIVE"
	}
	return orders
}

// movement moves each unit to its best target, never two to the same one, and lets some units
// support attacks instead.
func (e *envoy) movement() []string {
	goals := make([]*way, len(e.units))
	taken := map[string]bool{}
	for i, u := range e.units {
		best := -1.0
		for j := range u.moves {
			w := &u.moves[j]
			worth := e.Float()
			if w.prize {
				worth += 1.5
			}
			if w.taken && len(w.helped) == 0 {
				worth -= 1
			}
			if !taken[w.to[:3]] && worth > best && worth > 0.3 {
				best, goals[i] = worth, w
			}
		}
		if goals[i] != nil {
			taken[goals[i].to[:3]] = true
		}
	}
	return e.written(goals, e.supporters(goals))
}

// supporters finds, for each unit, the index of the unit that it supports, or -1.
func (e *envoy) supporters(goals []*way) []int {
	helps := make([]int, len(e.units))
	for i, u := range e.units {
		helps[i] = -1
		if goals[i] != nil && goals[i].prize && !goals[i].taken {
			continue
		}
		for j := range e.units {
			if j < i && helps[j] >= 0 || j == i || goals[j] == nil || !goals[j].prize {
				continue
			}
			if slices.Contains(goals[j].helped, u.unit) && e.Float() < 0.7 {
				helps[i] = j
				break
			}
		}
	}
	for _, j := range helps {
		if j >= 0 {
			helps[j] = -1 // a supported unit moves
		}
	}
	return helps
}

func (e *envoy) written(goals []*way, helps []int) []string {
	slip := 0.02
	switch {
	case worldsim.Small(e.model):
		slip = 0.05
	case worldsim.Large(e.model):
		slip = 0.005
	}
	orders := make([]string, len(e.units))
	for i, u := range e.units {
		switch j := helps[i]; {
		case e.Float() < slip:
			orders[i] = e.Pick(u.unit+" - SWI", u.unit+" S", u.unit+" - "+u.unit[2:5], "attack with "+u.unit)
		case j >= 0:
			orders[i] = u.unit + " S " + e.units[j].unit + " - " + strings.SplitN(goals[j].to, "/", 2)[0]
		case goals[i] == nil:
			orders[i] = u.unit + " H"
		default:
			orders[i] = u.unit + " - " + goals[i].to
		}
	}
	return orders
}

func (e *envoy) vote() string {
	if e.Float() < 0.6 {
		return "DRAW"
	}
	return "PLAY_ON"
}
