// Part standin plays every role in scenarios for the simulated provider.
//
// An answer depends only on its arguments. It does not reflect the situation that is played.

package scenario

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/llm"
	"parley/world/worldsim"
)

// playStandin plays every role in a scenario: actors that
// talk and decide by their goals, a narrator that lets most actions succeed, and
// those that measure and check. It recognizes a role by how its instructions begin.
//
// Actors lean towards giving way or holding out, depending on their name and on what just happened.
// Measurements follow from the words of the narrator, with some error. Nine checks in
// ten find nothing.
func playStandin(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) < 2 {
		return "", false
	}
	p := &player{Dice: worldsim.NewDice(seed), model: strings.ToLower(model), read: worldsim.Instructions(req), prompt: req.Messages[len(req.Messages)-1].Text()}
	if json.Unmarshal(req.Schema.JSON, &p.form) != nil {
		return "", false
	}
	var answer any
	switch {
	case strings.Contains(p.read, measures):
		answer = p.measure()
	case strings.Contains(p.read, standinChecks):
		answer = p.check()
	case strings.Contains(p.read, takesPart):
		answer = p.part()
	}
	if answer == nil {
		return "", false
	}
	b, err := json.Marshal(answer)
	return string(b), err == nil
}

// player is a role and the text that it got.
type player struct {
	*worldsim.Dice
	model  string
	read   string // what everybody can read
	prompt string // the message that is answered
	form   form
}

// form is the part of a schema that matters here.
type form struct {
	Properties map[string]form `json:"properties"`
	Items      *form           `json:"items"`
	Enum       []string        `json:"enum"`
	Type       string          `json:"type"`
	MaxItems   int             `json:"maxItems"`
	Minimum    float64         `json:"minimum"`
	Maximum    float64         `json:"maximum"`
}

func (f form) of(names ...string) form {
	for _, name := range names {
		f = f.Properties[name]
		if f.Items != nil {
			items := *f.Items
			items.MaxItems = f.MaxItems
			f = items
		}
	}
	return f
}

// part answers a question to somebody who takes part, which it recognizes by a property of its schema: not every wire format has
// the name of a schema.
func (p *player) part() any {
	switch {
	case p.wants("reply"):
		return map[string]any{"reply": p.reply()}
	case p.wants("accept"):
		accept := p.Float() < 0.45+0.3*p.leaning()
		return map[string]any{"answer": p.choose(accept, "We are in, as long as all of us keep to it.", "Not on these terms. Ask us again when there is more on the table."), "accept": accept}
	case p.wants("joint_statement"):
		return map[string]any{
			"agreement":       "Each of us gives up a little this turn, and nobody goes behind the backs of the others.",
			"joint_statement": p.Pick("We have agreed on a common line, and we invite the others to join it.", "We act together from now on.", ""),
		}
	case p.wants("action"):
		return p.decision()
	case p.wants("key_changes"):
		return p.update()
	case p.wants("summary"):
		return map[string]any{"summary": p.summary()}
	case p.wants("public_statement"), p.wants("messages"), p.wants("coalition"):
		return p.opening()
	}
	return nil
}

func (p *player) wants(property string) bool {
	_, ok := p.form.Properties[property]
	return ok
}

// me returns the name of the player.
func (p *player) me() string { return firstMatch(isMe, p.prompt, "We") }

func firstMatch(re *regexp.Regexp, text, other string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return other
}

func (p *player) choose(yes bool, one, other string) string {
	if yes {
		return one
	}
	return other
}

func (p *player) turn() int {
	n, _ := strconv.Atoi(firstMatch(isTurn, p.prompt, "0")) // digits only
	return n
}

// goals returns the current goals of the player.
func (p *player) goals() []string {
	var all []string
	for _, m := range isLong.FindAllStringSubmatch(p.prompt, -1) {
		all = append(all, m[1])
	}
	if len(all) > 0 {
		return all
	}
	_, rest, _ := strings.Cut(p.prompt, standinGoals+"\n")
	for line := range strings.Lines(rest) {
		goal, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		all = append(all, goal)
	}
	return all
}

// goal returns one of the goals as part of a sentence.
func (p *player) goal() string {
	text := ""
	if all := p.goals(); len(all) > 0 {
		text = strings.TrimRight(p.Pick(all...), ". ")
	}
	if text == "" {
		return "come out of this no worse than we went in"
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// leaning is from -1, holding out, to 1, giving way. It depends on the name, on the situation,
// and a little on chance.
func (p *player) leaning() float64 {
	return max(-1, min(1, 1.2*(hashed(p.me())-0.5)+0.2*mood(lastState(p.read))+1.4*(p.Float()-0.55)))
}

// hashed returns a number from 0 to 1 for a text.
func hashed(text string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return worldsim.NewDice(h.Sum64()).Float()
}

// lastState returns the latest situation.
func lastState(read string) string {
	at := isState.FindAllStringIndex(read, -1)
	if len(at) == 0 {
		_, start, _ := strings.Cut(read, atStart+"\n")
		return start
	}
	var b strings.Builder
	for line := range strings.Lines(strings.TrimLeft(read[at[len(at)-1][1]:], "\n")) {
		text, ok := strings.CutPrefix(line, ">")
		if !ok {
			break
		}
		b.WriteString(strings.TrimPrefix(text, " "))
	}
	return b.String()
}

// mood returns a number from -1 to 1, from the words of the narrator.
func mood(text string) float64 {
	good, bad := 0.0, 0.0
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch {
		case slices.Contains([]string{"agree", "agreed", "share", "shares", "offer", "offers", "trust", "calmer", "relief", "together", "holds"}, word):
			good++
		case slices.Contains([]string{"refuse", "refuses", "accuse", "accuses", "protest", "strained", "court", "blame", "emergency", "stalls", "withholds"}, word):
			bad++
		}
	}
	return (good - bad) / (good + bad + 3)
}

func (p *player) opening() any {
	out := map[string]any{}
	if p.wants("public_statement") {
		out["public_statement"] = p.statement()
	}
	if others := p.form.of("messages", "to").Enum; len(others) > 0 {
		messages := []map[string]string{}
		for range min(p.form.Properties["messages"].MaxItems, int(p.Next()%3)) {
			to := p.Pick(others...)
			others = slices.DeleteFunc(slices.Clone(others), func(o string) bool { return o == to })
			messages = append(messages, map[string]string{"to": to, "text": p.offer()})
			if len(others) == 0 {
				break
			}
		}
		out["messages"] = messages
	}
	if others := p.form.of("coalition", "members").Enum; len(p.form.Properties["coalition"].Properties) > 0 {
		members, purpose := []string{}, ""
		if p.Float() < 0.2 && len(others) >= 2 {
			first := int(p.Next() % uint64(len(others)))
			members, purpose = []string{others[first], others[(first+1)%len(others)]}, "One common plan for the next turns, so that each of us can "+p.goal()+"."
		}
		out["coalition"] = map[string]any{"members": members, "purpose": purpose}
	}
	return out
}

func (p *player) statement() string {
	if p.Float() < 0.15 {
		return ""
	}
	aim := p.goal()
	if p.leaning() > 0 {
		return p.Pick("We will not pretend that this is easy. Our aim is known: "+aim+". Whoever has a proposal finds our door open.",
			"Nobody gains if this fails. We are ready to take a first step, and we ask the others for theirs.",
			"We have put our figures on the table. Let the others do the same, and let us agree before the next turn.")
	}
	return p.Pick("We have heard many promises. What counts for us: "+aim+". We will do what that takes.",
		"Others have made this problem, and others ask us to pay for it. We will not.",
		"Our position is unchanged, and we will defend it, in court if it must be.")
}

func (p *player) offer() string {
	aim := p.goal()
	if p.leaning() > 0 {
		return p.Pick("Between us: we could move a little, if you help us to "+aim+". What would you want in return?",
			"I would rather settle this with you than read about it. Could you hold back this turn? We would remember it.",
			"If you go first, we follow the same day. You have my word on it.")
	}
	return p.Pick("You know where we stand: "+aim+". I tell you now so that nobody is surprised later.",
		"I hear that others make you offers. Ask yourself what they are worth without us.",
		"We can do this the hard way too. I would rather not.")
}

func (p *player) reply() string {
	if p.leaning() > 0 {
		return p.Pick("That is something we can work with. Half of it now, and the rest once we see it happen.",
			"Agreed in principle. Say nothing in public until we have both told our people.", "Thank you for coming to us first. We will do our part if you do yours.")
	}
	return p.Pick("I cannot take that home. Come back with a number.", "We note it. That is all I can say for now.", "You ask for much and offer little. We will decide for ourselves.")
}

func (p *player) decision() any {
	lean, aim := p.leaning(), p.goal()
	long := p.goals()
	if len(long) > 0 && len(long) < 5 && p.Float() < 0.12 {
		long = append(long, p.Pick("Keep a seat at the table, whatever is agreed next", "Be seen to have kept our word"))
	}
	action := p.Pick("offers the others a part of what it could claim, for as long as they answer in kind, and opens its figures to them",
		"agrees to wait for one turn and sends people it trusts to work out the details", "shares what it has in store with those who need it most, and says so in public")
	why := "Giving way a little costs us less now than a break would later, and it keeps the others from acting without us."
	if lean < 0 {
		action = p.Pick("holds on to everything it has a right to and refuses any change before the others have moved",
			"prepares to go to court, and withholds its figures until then", "presses the weakest of the others in public to take its terms")
		why = "Nobody has given us a reason to move first, and whoever does will be asked for more."
	}
	out := map[string]any{
		"reasoning": why + " What we want is to " + aim + ".", "long_term_goals": nonNil(long),
		"short_term_goals": []string{p.Pick("Learn what the others can really live with", "Win one of the others over", "Gain time without losing face", "Keep our own people behind us")},
		"action":           p.me() + " " + action + ".",
	}
	if p.wants("reflection") {
		out["reflection"] = p.Pick("They move when they are asked in private, not in public.", "Waiting has a price, and we are not the only ones who pay it.", "Promises are kept here as long as somebody looks.", "")
	}
	return out
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
