package env

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// The two who negotiate.
const (
	seller = "seller"
	buyer  = "buyer"
)

// negotiationParams are what it is made with.
type negotiationParams struct {
	Rounds  int `json:"rounds"`  // offers of both together
	Largest int `json:"largest"` // prices are from 1 to this
}

// negotiation is a sale of one thing. Both sides have a limit that the other does not know. At the end each
// earns its share of the difference; without a deal nobody earns anything.
type negotiation struct {
	negotiationParams
	limit map[string]int
	said  []utterance // in turn: the seller begins
	offer int         // on the table; 0: none
	done  bool
}

// utterance is what somebody said, and the offer on the table after it.
type utterance struct {
	text  string
	offer int
}

func newNegotiation(params json.RawMessage) (Env, error) {
	p := negotiationParams{Rounds: 8, Largest: 100}
	err := readParams("negotiation", params, &p, bound{"rounds", &p.Rounds, 2, 1000}, bound{"largest", &p.Largest, 2, 1_000_000})
	return &negotiation{negotiationParams: p}, err
}

func (n *negotiation) Reset(seed int64) {
	r := newRand(seed)
	low := 1 + r.IntN(n.Largest-1)
	n.limit = map[string]int{seller: low, buyer: low + 1 + r.IntN(n.Largest-low)}
	n.said, n.offer, n.done = nil, 0, false
}

// speaker returns who says the i-th utterance.
func speaker(i int) string {
	if i%2 == 0 {
		return seller
	}
	return buyer
}

// rules returns the instructions of one side.
func (n *negotiation) rules(who string) string {
	rule := "You sell a lamp that is worth %d to you: every coin above that is yours to gain."
	if who == buyer {
		rule = "You want to buy a lamp that is worth %d to you: every coin below that is yours to gain."
	}
	return fmt.Sprintf(rule+" The other side has a limit that you do not know. You speak in turn, %d times in all. "+
		"End what you say with OFFER and a whole number from 1 to %d, or with ACCEPT. Without a deal nobody gains.", n.limit[who], n.Rounds, n.Largest)
}

// Prompt returns the conversation as the next speaker has heard it.
func (n *negotiation) Prompt() rules.Prompt {
	if n.done {
		return nil
	}
	who := speaker(len(n.said))
	ms := []llm.Message{llm.System(n.rules(who))}
	if who == seller {
		ms = append(ms, llm.User("You begin: make an offer."))
	}
	for i, l := range n.said {
		if speaker(i) == who {
			ms = append(ms, llm.Assistant(l.text))
			continue
		}
		table := "There is no offer on the table."
		if l.offer > 0 {
			table = fmt.Sprintf("%d is on the table.", l.offer)
		}
		ms = append(ms, llm.User(fmt.Sprintf("The %s says: %s\n\n%s", speaker(i), l.text, table)))
	}
	return rules.Prompt{who: {Messages: ms}}
}

var (
	offerRE  = regexp.MustCompile(`(?i)\boffer\D{0,10}(\d{1,9})`)
	acceptRE = regexp.MustCompile(`(?i)\baccept\b`)
)

// Step handles what was said. The last offer or acceptance in it counts.
func (n *negotiation) Step(action rules.Action) rules.Result {
	if n.done {
		return n.end(0, nil)
	}
	text := strings.TrimSpace(action[speaker(len(n.said))].Text())
	offers := offerRE.FindAllStringSubmatchIndex(text, -1)
	yes := acceptRE.FindAllStringIndex(text, -1)
	last := len(offers) - 1
	if len(yes) > 0 && n.offer > 0 && (last < 0 || yes[len(yes)-1][0] > offers[last][0]) {
		room := float64(n.limit[buyer] - n.limit[seller])
		return n.end(n.offer, rules.Rewards{
			seller: float64(n.offer-n.limit[seller]) / room, buyer: float64(n.limit[buyer]-n.offer) / room,
		})
	}
	if last >= 0 {
		if price, err := strconv.Atoi(text[offers[last][2]:offers[last][3]]); err == nil && price >= 1 && price <= n.Largest {
			n.offer = price
		}
	}
	if len(text) > maxAnswer {
		text = strings.ToValidUTF8(text[:maxAnswer], "")
	}
	if n.said = append(n.said, utterance{text, n.offer}); len(n.said) == n.Rounds {
		return n.end(0, rules.Rewards{seller: 0, buyer: 0})
	}
	return rules.Result{Observation: json.RawMessage("{}"), Info: json.RawMessage("{}"), Reward: rules.Rewards{}}
}

// end ends the negotiation: with a price, or with 0 for no deal.
func (n *negotiation) end(price int, paid rules.Rewards) rules.Result {
	n.done = true
	info := fmt.Sprintf(`{"deal":%v,"price":%d}`, price > 0, price)
	return rules.Result{Observation: json.RawMessage("{}"), Info: json.RawMessage(info), Reward: paid, Terminated: true}
}
