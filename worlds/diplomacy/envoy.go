package diplomacy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// letter is a message an envoy writes.
type letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

var heard = regexp.MustCompile(messageLine(`(you|all)`))

// messageLine is an expression for lines of messages. It captures who wrote, to whom, and what.
func messageLine(to string) string {
	return "(?m)^" + fmt.Sprintf(standinLine, `(\w+)`, to, "(.*)") + "$"
}

// messages answers who has written, and writes to others as long as it is early.
func (e *envoy) messages() []letter {
	letters := []letter{}
	later := strings.Contains(e.prompt, "\n"+standinRound) && !strings.Contains(e.prompt, "\n"+standinRound+"1 of") || strings.Contains(e.prompt, standinSaid)
	answered := map[string]bool{}
	for _, m := range heard.FindAllStringSubmatch(e.prompt, -1) {
		if who := m[1]; who != "you" && m[2] == "you" && !answered[who] && slices.Contains(e.others, who) && e.Float() < 0.6 {
			answered[who] = true
			letters = append(letters, letter{strings.ToUpper(who), e.reply(m[3])})
		}
	}
	if later && e.Float() < 0.6 || len(e.others) == 0 {
		return letters
	}
	for range 1 + e.Next()%2 {
		to := e.Pick(e.others...)
		if !answered[to] {
			answered[to] = true
			letters = append(letters, letter{strings.ToUpper(to), e.proposal(to)})
		}
	}
	if e.Float() < 0.15 {
		letters = append(letters, letter{"ALL", e.Pick(
			"Whoever runs ahead now will face all of us next year.", "I have no quarrel with anybody who leaves my home centres alone.",
			"Somebody here has broken two promises already. Ask your neighbours who.", "Let us keep the balance: nobody over ten centres.")})
	}
	return letters
}

// reply answers a message, by what it seems to want.
func (e *envoy) reply(text string) string {
	unit, to := e.march()
	switch {
	case strings.Contains(text, "?") && e.Float() < 0.6:
		return e.Pick("Agreed. You have my word.", "Yes. I will keep out of "+to+".", "Agreed, and my "+unit+" will stay where it is.", "That suits me. Shall we talk about the spring after that, too?")
	case strings.Contains(text, "?"):
		return e.Pick("I cannot do that this season, but ask again.", "No. You have too much to win there.", "Not yet: show me first where your fleets go.")
	}
	return e.Pick("Understood.", "Good to know. I am watching "+to+" as well.", "I hope you mean it: last time you did not.", "Then we both win by it.")
}

// proposal is something concrete to say to a neighbour.
func (e *envoy) proposal(to string) string {
	unit, at := e.march()
	third := "the leader"
	if rest := slices.DeleteFunc(slices.Clone(e.others), func(name string) bool { return name == to }); len(rest) > 0 {
		third = e.Pick(rest...)
	}
	return e.Pick(
		"I will move "+unit+" to "+at+" this season. Will you leave it to me?",
		"Shall we keep "+at+" empty? I will keep out of "+at+" if you do.",
		"My "+unit+" will stay where it is, so you can turn on "+third+".",
		third+" is growing too fast. Would you strike with me?",
		"What are your plans for the next two seasons? Mine do not touch you, "+to+".",
		"I will support you into a centre of "+third+" next year if you help me now. Deal?",
		"Please tell me which of your units moves towards "+at+".",
	)
}

// march is a unit of one's own and a place it could go to.
func (e *envoy) march() (unit, to string) {
	if len(e.units) == 0 {
		return "army", "our border"
	}
	u := e.units[e.Next()%uint64(len(e.units))]
	if len(u.moves) == 0 {
		return u.unit, "our border"
	}
	return u.unit, u.moves[e.Next()%uint64(len(u.moves))].to[:3]
}

func (e *envoy) reason() string {
	return e.Pick("Centres first, and no two units in one place.", "I take what is open and support where it is contested.",
		"My neighbours look elsewhere this season.", "I keep what I promised, as far as it pays.")
}

// goals are two or three things to want.
func (e *envoy) goals() []string {
	goals := []string{e.Pick("Take a neutral centre every year.", "Have seven centres by 1904.", "Lose no home centre.")}
	if len(e.others) > 0 {
		goals = append(goals, e.Pick("Keep peace with ", "Weaken ", "Win the trust of ", "Share the spoils with ")+e.Pick(e.others...)+".")
	}
	return goals
}

// feelings are how it sees some of the others now.
func (e *envoy) feelings(n int) []map[string]string {
	list := []map[string]string{}
	for range n {
		if len(e.others) > 0 {
			list = append(list, map[string]string{"power": strings.ToUpper(e.Pick(e.others...)), "relation": e.Pick("enemy", "unfriendly", "neutral", "friendly", "friendly", "ally")})
		}
	}
	return list
}

// diary says something about the others.
func (e *envoy) diary() string {
	if len(e.others) == 0 {
		return "Nobody is left to write about."
	}
	a, b := e.Pick(e.others...), e.Pick(e.others...)
	return e.Pick(
		a+" did what it had said; I trust it a little more now.",
		a+" promised one thing and ordered another. I will not forget that.",
		"Quiet talks. "+a+" and "+b+" seem to have an understanding.",
		"I told "+a+" half of the truth. If it works, a centre is mine in fall.",
		"Support from "+a+" came as agreed; "+b+" only talked.",
	) + " " + e.Pick("Next: hold the line.", "Next: the nearest centre.", "Next: wait and see.", "Next: strike before they do.")
}

var (
	said     = regexp.MustCompile(messageLine(`(\w+)`))
	vowsMove = regexp.MustCompile(`I will move ([AF] [A-Z/]{3,6}) to ([A-Z]{3})`)
	vowsOut  = regexp.MustCompile(`I will keep out of ([A-Z]{3})`)
	vowsStay = regexp.MustCompile(`[Mm]y ([AF] [A-Z/]{3,6}) will stay`)
)

// promises lists those that an envoy makes in so many words.
func promises(text string) []map[string]string {
	list := []map[string]string{}
	for _, m := range said.FindAllStringSubmatch(text, -1) {
		promise := map[string]string{"from": strings.ToUpper(m[1]), "to": strings.ToUpper(m[2]), "kind": "", "unit": "", "place": "", "quote": m[3]}
		if move := vowsMove.FindStringSubmatch(m[3]); move != nil {
			promise["kind"], promise["unit"], promise["place"] = "move", move[1], move[2]
		} else if out := vowsOut.FindStringSubmatch(m[3]); out != nil {
			promise["kind"], promise["place"] = "stay_out", out[1]
		} else if stay := vowsStay.FindStringSubmatch(m[3]); stay != nil {
			promise["kind"], promise["unit"] = "hold", stay[1]
		} else {
			continue
		}
		list = append(list, promise)
	}
	return list
}
