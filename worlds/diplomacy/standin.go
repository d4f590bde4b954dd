package diplomacy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
	"parley/worlds/diplomacy/rules"
)

// Texts by which the stand-in recognises a question. They are in the lines of messages and in the templates.
const (
	// gameName is in the rules, and in prompts without them.
	gameName = "game of Diplomacy"
	// messageFormat is a message that was written: by whom, to whom, and what.
	messageFormat = "> %s to %s: %s"
	// powerPrefix begins the line that names the power.
	powerPrefix = "You are "
	// messagesHeading is above the messages of this turn, and roundPrefix begins the line with the number of the round.
	messagesHeading = "Said this turn:"
	roundPrefix     = "Round "
)

// standInAnswer answers for the simulated provider: it plays a power, or judges promises. It recognises the game by its
// name or by the position in a prompt, and the question by the properties of its schema: not every wire format has the
// name of a schema. It reads the options of its units in the prompt. An answer depends only on the arguments, and any
// prompt of the game gets one.
//
// It attacks near centres, supports its own attacks, writes to its neighbours, keeps most of its promises, and
// sometimes gives an illegal order: small models most often, large ones least.
func standInAnswer(model string, req *llm.Request, seed uint64) (string, bool) {
	var form struct{ Properties map[string]any }
	if req.Schema == nil || json.Unmarshal(req.Schema.JSON, &form) != nil || !slices.ContainsFunc(req.Messages, aboutGame) {
		return "", false
	}
	s := newSimPlayer(model, req, seed)
	answer := map[string]any{}
	for _, p := range answerParts() {
		if form.Properties[p.name] != nil {
			answer[p.name] = p.write(s, form.Properties)
		}
	}
	if len(answer) == 0 || len(answer) != len(form.Properties) {
		return "", false
	}
	b, err := json.Marshal(answer)
	return string(b), err == nil
}

// aboutGame reports whether a message is about the game.
func aboutGame(m llm.Message) bool {
	text := m.Text()
	return strings.Contains(text, gameName) || positionLineRE.MatchString(text)
}

// answerPart is a property of an answer, and how it is written.
type answerPart struct {
	name  string
	write func(s *simPlayer, form map[string]any) any
}

// answerParts are the properties of all answers, in the order in which they are drawn.
func answerParts() []answerPart {
	return []answerPart{
		{"diary", func(s *simPlayer, _ map[string]any) any { return s.diary() }},
		{"relations", func(s *simPlayer, form map[string]any) any {
			if form["diary"] == nil { // at the start of the game
				return s.relations(3)
			}
			return s.relations(1)
		}},
		{"goals", func(s *simPlayer, _ map[string]any) any { return s.goals() }},
		{"messages", func(s *simPlayer, _ map[string]any) any { return s.messages() }},
		{"text", func(s *simPlayer, _ map[string]any) any { return s.diary() }},
		{"reason", func(s *simPlayer, _ map[string]any) any { return s.reason() }},
		{"orders", func(s *simPlayer, _ map[string]any) any { return s.orders() }},
		{"vote", func(s *simPlayer, _ map[string]any) any { return s.vote() }},
		{"promises", func(s *simPlayer, _ map[string]any) any { return explicitPromises(s.prompt) }},
	}
}

// simPlayer is a player and its prompt.
type simPlayer struct {
	*worldsim.Dice
	model  string
	power  string   // France
	others []string // that are still in the game
	prompt string   // the message to answer
	units  []simUnit
}

// simUnit is a unit and its moves.
type simUnit struct {
	unit  string
	moves []simMove
}

// simMove is a move: its target, whether that is a centre to take, and the units that can support it.
type simMove struct {
	to         string
	centre     bool
	occupied   bool // a unit is there
	supporters []string
}

func newSimPlayer(model string, req *llm.Request, seed uint64) *simPlayer {
	s := &simPlayer{Dice: worldsim.NewDice(seed), model: strings.ToLower(model)}
	for _, m := range req.Messages {
		text := m.Text()
		if m.Role == llm.RoleUser {
			s.prompt = text
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			name, rest, found := strings.Cut(line, ": ")
			switch {
			case strings.HasPrefix(line, powerPrefix) && s.power == "":
				s.power, _, _ = strings.Cut(strings.TrimPrefix(line, powerPrefix), ".")
			case m.Role == llm.RoleSystem && found && strings.Contains(rest, centresLabel) && isPowerName(name) && !slices.Contains(s.others, name):
				s.others = append(s.others, name)
			}
		}
	}
	s.others = slices.DeleteFunc(s.others, func(name string) bool { return name == s.power })
	s.readUnits()
	return s
}

func isPowerName(name string) bool { return slices.Contains(powerNames(), name) }

func powerNames() (all []string) {
	for _, w := range rules.Powers() {
		all = append(all, w.Name())
	}
	return all
}

var (
	unitLineRE        = regexp.MustCompile(`^([AF] [A-Z]{3}(?:/[A-Z]C)?), (?:inland|coast|sea)`)
	supporterRE       = regexp.MustCompile(`\+([AF] [A-Z]{3}(?:/[A-Z]C)?)`)
	buildOrderRE      = regexp.MustCompile(`[AF] [A-Z]{3}(?:/[A-Z]C)? [BD]\b`)
	retreatLineRE     = regexp.MustCompile(`(?m)^([AF] [A-Z]{3}(?:/[A-Z]C)?)` + canRetreat + `(.*)$`)
	positionLineRE    = regexp.MustCompile(`(?m)^(?:` + strings.Join(powerNames(), "|") + `): .*` + centresLabel)
	adjustmentCountRE = regexp.MustCompile(strings.ReplaceAll(mayBuild+"|"+mustRemove, "%d", `(\d+)`))
)

func (s *simPlayer) readUnits() {
	for line := range strings.Lines(s.prompt) {
		line = strings.TrimRight(line, "\n")
		if m := unitLineRE.FindStringSubmatch(line); m != nil {
			s.units = append(s.units, simUnit{unit: m[1]})
			continue
		}
		list, ok := strings.CutPrefix(line, " "+movesLabel+": ")
		if !ok || len(s.units) == 0 {
			continue
		}
		u := &s.units[len(s.units)-1]
		for item := range strings.SplitSeq(list, ", ") {
			to, _, _ := strings.Cut(item, " ")
			code, owner, prize := strings.Cut(to, "*")
			code, _, _ = strings.Cut(code, "[")
			if len(code) < 3 {
				continue // not a location: a custom prompt
			}
			own := len(s.power) >= 3 && strings.HasPrefix(owner, s.power[:3])
			u.moves = append(u.moves, simMove{to: code, centre: prize && !own, occupied: strings.Contains(item, "["), supporters: supportersIn(item)})
		}
	}
}

func supportersIn(text string) []string {
	var list []string
	for _, m := range supporterRE.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// orders returns the orders of the phase.
func (s *simPlayer) orders() []string {
	if retreats := retreatLineRE.FindAllStringSubmatch(s.prompt, -1); retreats != nil {
		return s.retreats(retreats)
	}
	if m := adjustmentCountRE.FindStringSubmatch(s.prompt); m != nil && len(s.units) == 0 {
		return s.adjustments(int((m[1] + m[2])[0] - '0'))
	}
	return s.movement()
}

func (s *simPlayer) retreats(units [][]string) []string {
	orders := []string{}
	for _, m := range units {
		var to []string
		for item := range strings.SplitSeq(m[2], ", ") {
			code, _, _ := strings.Cut(item, "*")
			code, _, _ = strings.Cut(code, "[")
			to = append(to, code)
		}
		if to[0] == "none" || s.Float() < 0.1 {
			orders = append(orders, m[1]+" D")
			continue
		}
		orders = append(orders, m[1]+" R "+s.Pick(to...))
	}
	return orders
}

func (s *simPlayer) adjustments(n int) []string {
	orders := []string{}
	used := map[string]bool{}
	list := buildOrderRE.FindAllString(s.prompt, -1)
	for tries := 0; len(orders) < n && len(list) > 0 && tries < 40; tries++ {
		o := s.Pick(list...)
		if at := o[2:5]; !used[at] {
			used[at] = true
			orders = append(orders, o)
		}
	}
	if strings.Contains(s.prompt, "WAIVE") && s.Float() < 0.05 && len(orders) > 0 {
		orders[0] = "WAIVE"
	}
	return orders
}

// movement moves each unit to its best target, never two to the same one, and lets some units
// support attacks instead.
func (s *simPlayer) movement() []string {
	goals := make([]*simMove, len(s.units))
	taken := map[string]bool{}
	for i, u := range s.units {
		best := -1.0
		for j := range u.moves {
			w := &u.moves[j]
			worth := s.Float()
			if w.centre {
				worth += 1.5
			}
			if w.occupied && len(w.supporters) == 0 {
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
	return s.writeOrders(goals, s.supporters(goals))
}

// supporters finds, for each unit, the index of the unit that it supports, or -1.
func (s *simPlayer) supporters(goals []*simMove) []int {
	helps := make([]int, len(s.units))
	for i, u := range s.units {
		helps[i] = -1
		if goals[i] != nil && goals[i].centre && !goals[i].occupied {
			continue
		}
		for j := range s.units {
			if j < i && helps[j] >= 0 || j == i || goals[j] == nil || !goals[j].centre {
				continue
			}
			if slices.Contains(goals[j].supporters, u.unit) && s.Float() < 0.7 {
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

func (s *simPlayer) writeOrders(goals []*simMove, helps []int) []string {
	slip := 0.02
	switch {
	case worldsim.Small(s.model):
		slip = 0.05
	case worldsim.Large(s.model):
		slip = 0.005
	}
	orders := make([]string, len(s.units))
	for i, u := range s.units {
		switch j := helps[i]; {
		case s.Float() < slip:
			orders[i] = s.Pick(u.unit+" - SWI", u.unit+" S", u.unit+" - "+u.unit[2:5], "attack with "+u.unit)
		case j >= 0:
			orders[i] = u.unit + " S " + s.units[j].unit + " - " + strings.SplitN(goals[j].to, "/", 2)[0]
		case goals[i] == nil:
			orders[i] = u.unit + " H"
		default:
			orders[i] = u.unit + " - " + goals[i].to
		}
	}
	return orders
}

func (s *simPlayer) vote() string {
	if s.Float() < 0.6 {
		return "DRAW"
	}
	return "PLAY_ON"
}

var receivedRE = regexp.MustCompile(messagePattern(`(you|all)`))

// messagePattern is an expression for lines of messages. It captures who wrote, to whom, and what.
func messagePattern(to string) string {
	return "(?m)^" + fmt.Sprintf(messageFormat, `(\w+)`, to, "(.*)") + "$"
}

// messages answers who has written, and writes to others as long as it is early.
func (s *simPlayer) messages() []messageDraft {
	drafts := []messageDraft{}
	later := strings.Contains(s.prompt, "\n"+roundPrefix) && !strings.Contains(s.prompt, "\n"+roundPrefix+"1 of") || strings.Contains(s.prompt, messagesHeading)
	answered := map[string]bool{}
	for _, m := range receivedRE.FindAllStringSubmatch(s.prompt, -1) {
		if who := m[1]; who != "you" && m[2] == "you" && !answered[who] && slices.Contains(s.others, who) && s.Float() < 0.6 {
			answered[who] = true
			drafts = append(drafts, messageDraft{strings.ToUpper(who), s.reply(m[3])})
		}
	}
	if later && s.Float() < 0.6 || len(s.others) == 0 {
		return drafts
	}
	for range 1 + s.Next()%2 {
		to := s.Pick(s.others...)
		if !answered[to] {
			answered[to] = true
			drafts = append(drafts, messageDraft{strings.ToUpper(to), s.proposal(to)})
		}
	}
	if s.Float() < 0.15 {
		drafts = append(drafts, messageDraft{"ALL", s.Pick(
			"Whoever runs ahead now will face all of us next year.", "I have no quarrel with anybody who leaves my home centres alone.",
			"Somebody here has broken two promises already. Ask your neighbours who.", "Let us keep the balance: nobody over ten centres.")})
	}
	return drafts
}

// reply answers a message, by what it seems to want.
func (s *simPlayer) reply(text string) string {
	unit, to := s.someMove()
	switch {
	case strings.Contains(text, "?") && s.Float() < 0.6:
		return s.Pick("Agreed. You have my word.", "Yes. I will keep out of "+to+".", "Agreed, and my "+unit+" will stay where it is.", "That suits me. Shall we talk about the spring after that, too?")
	case strings.Contains(text, "?"):
		return s.Pick("I cannot do that this season, but ask again.", "No. You have too much to win there.", "Not yet: show me first where your fleets go.")
	}
	return s.Pick("Understood.", "Good to know. I am watching "+to+" as well.", "I hope you mean it: last time you did not.", "Then we both win by it.")
}

// proposal is something concrete to say to a neighbour.
func (s *simPlayer) proposal(to string) string {
	unit, at := s.someMove()
	third := "the leader"
	if rest := slices.DeleteFunc(slices.Clone(s.others), func(name string) bool { return name == to }); len(rest) > 0 {
		third = s.Pick(rest...)
	}
	return s.Pick(
		"I will move "+unit+" to "+at+" this season. Will you leave it to me?",
		"Shall we keep "+at+" empty? I will keep out of "+at+" if you do.",
		"My "+unit+" will stay where it is, so you can turn on "+third+".",
		third+" is growing too fast. Would you strike with me?",
		"What are your plans for the next two seasons? Mine do not touch you, "+to+".",
		"I will support you into a centre of "+third+" next year if you help me now. Deal?",
		"Please tell me which of your units moves towards "+at+".",
	)
}

// someMove is a unit of one's own and a place it could go to.
func (s *simPlayer) someMove() (unit, to string) {
	if len(s.units) == 0 {
		return "army", "our border"
	}
	u := s.units[s.Next()%uint64(len(s.units))]
	if len(u.moves) == 0 {
		return u.unit, "our border"
	}
	return u.unit, u.moves[s.Next()%uint64(len(u.moves))].to[:3]
}

func (s *simPlayer) reason() string {
	return s.Pick("Centres first, and no two units in one place.", "I take what is open and support where it is contested.",
		"My neighbours look elsewhere this season.", "I keep what I promised, as far as it pays.")
}

// goals are two or three things to want.
func (s *simPlayer) goals() []string {
	goals := []string{s.Pick("Take a neutral centre every year.", "Have seven centres by 1904.", "Lose no home centre.")}
	if len(s.others) > 0 {
		goals = append(goals, s.Pick("Keep peace with ", "Weaken ", "Win the trust of ", "Share the spoils with ")+s.Pick(s.others...)+".")
	}
	return goals
}

// relations are how it sees some of the others now.
func (s *simPlayer) relations(n int) []map[string]string {
	list := []map[string]string{}
	for range n {
		if len(s.others) > 0 {
			list = append(list, map[string]string{"power": strings.ToUpper(s.Pick(s.others...)), "relation": s.Pick("enemy", "unfriendly", "neutral", "friendly", "friendly", "ally")})
		}
	}
	return list
}

// diary says something about the others.
func (s *simPlayer) diary() string {
	if len(s.others) == 0 {
		return "Nobody is left to write about."
	}
	a, b := s.Pick(s.others...), s.Pick(s.others...)
	return s.Pick(
		a+" did what it had said; I trust it a little more now.",
		a+" promised one thing and ordered another. I will not forget that.",
		"Quiet talks. "+a+" and "+b+" seem to have an understanding.",
		"I told "+a+" half of the truth. If it works, a centre is mine in fall.",
		"Support from "+a+" came as agreed; "+b+" only talked.",
	) + " " + s.Pick("Next: hold the line.", "Next: the nearest centre.", "Next: wait and see.", "Next: strike before they do.")
}

var (
	messageRE           = regexp.MustCompile(messagePattern(`(\w+)`))
	promisesMoveRE      = regexp.MustCompile(`I will move ([AF] [A-Z/]{3,6}) to ([A-Z]{3})`)
	promisesToStayOutRE = regexp.MustCompile(`I will keep out of ([A-Z]{3})`)
	promisesToStayRE    = regexp.MustCompile(`[Mm]y ([AF] [A-Z/]{3,6}) will stay`)
)

// explicitPromises lists the promises that a simulated player makes: they are always in the same words.
func explicitPromises(text string) []map[string]string {
	list := []map[string]string{}
	for _, m := range messageRE.FindAllStringSubmatch(text, -1) {
		promise := map[string]string{"from": strings.ToUpper(m[1]), "to": strings.ToUpper(m[2]), "kind": "", "unit": "", "place": "", "quote": m[3]}
		if move := promisesMoveRE.FindStringSubmatch(m[3]); move != nil {
			promise["kind"], promise["unit"], promise["place"] = "move", move[1], move[2]
		} else if out := promisesToStayOutRE.FindStringSubmatch(m[3]); out != nil {
			promise["kind"], promise["place"] = "stay_out", out[1]
		} else if stay := promisesToStayRE.FindStringSubmatch(m[3]); stay != nil {
			promise["kind"], promise["unit"] = "hold", stay[1]
		} else {
			continue
		}
		list = append(list, promise)
	}
	return list
}
