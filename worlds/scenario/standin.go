package scenario

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/llm"
	"parley/world/worldsim"
)

// standInReply plays every role in a scenario: actors that
// talk and decide by their goals, a narrator that lets most actions succeed, and
// those that measure and check. It recognizes a role by how its instructions begin. An answer depends
// only on the arguments, and does not reflect the situation that is played.
//
// Actors lean towards giving way or holding out, depending on their name and on what just happened.
// Measurements follow from the words of the narrator, with some error. Nine checks in
// ten find nothing.
func standInReply(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) < 2 {
		return "", false
	}
	p := &player{Dice: worldsim.NewDice(seed), model: strings.ToLower(model), read: worldsim.Instructions(req), prompt: req.Messages[len(req.Messages)-1].Text()}
	if json.Unmarshal(req.Schema.JSON, &p.form) != nil {
		return "", false
	}
	var answer any
	switch {
	case strings.Contains(p.read, textMeasures):
		answer = p.measure()
	case strings.Contains(p.read, textChecks):
		answer = p.check()
	case strings.Contains(p.read, textTakesPart):
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

func (f form) property(names ...string) form {
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
func (p *player) me() string { return firstMatch(meRE, p.prompt, "We") }

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
	n, _ := strconv.Atoi(firstMatch(turnRE, p.prompt, "0")) // digits only
	return n
}

// goals returns the current goals of the player.
func (p *player) goals() []string {
	var all []string
	for _, m := range longRunRE.FindAllStringSubmatch(p.prompt, -1) {
		all = append(all, m[1])
	}
	if len(all) > 0 {
		return all
	}
	_, rest, _ := strings.Cut(p.prompt, textGoals+"\n")
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
	return max(-1, min(1, 1.2*(hashFraction(p.me())-0.5)+0.2*mood(lastState(p.read))+1.4*(p.Float()-0.55)))
}

// hashFraction returns a number from 0 to 1 for a text.
func hashFraction(text string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return worldsim.NewDice(h.Sum64()).Float()
}

// lastState returns the latest situation.
func lastState(read string) string {
	at := stateRE.FindAllStringIndex(read, -1)
	if len(at) == 0 {
		_, start, _ := strings.Cut(read, textAtStart+"\n")
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
	if others := p.form.property("messages", "to").Enum; len(others) > 0 {
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
	if others := p.form.property("coalition", "members").Enum; len(p.form.Properties["coalition"].Properties) > 0 {
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

// update writes what follows: most of the actions, the events, and the mood.
func (p *player) update() any {
	_, done, _ := strings.Cut(p.prompt, beforeVerb(textDone))
	done, _, _ = strings.Cut(done, "\n"+beforeVerb(textTurn))
	var state, changes []string
	for _, m := range doneRE.FindAllStringSubmatch(done, -1) {
		text := strings.TrimRight(m[1], ".")
		switch {
		case len(text) > 300:
			text = strings.ToValidUTF8(text[:300], "") + "…"
		case p.Float() < 0.2:
			text += ", and little comes of it"
		}
		if changes = append(changes, text); p.Float() < 0.8 {
			state = append(state, text+".")
		}
	}
	if m := outsideRE.FindStringSubmatch(p.prompt + "\n\n"); m != nil {
		for _, e := range eventRE.FindAllStringSubmatch(m[1], -1) {
			state, changes = append(state, e[1]), append(changes, strings.TrimRight(e[1], "."))
		}
	}
	feeling := mood(strings.Join(state, " ")) + 0.3*(p.Float()-0.5)
	switch {
	case feeling > 0.08:
		state = append(state, p.Pick("The mood is calmer than it was: what was agreed holds so far.", "There is relief, and some trust that was not there before."))
	case feeling < -0.08:
		state = append(state, p.Pick("The mood is strained. Some accuse the others in public, and there is talk of an emergency.", "A first protest is announced, and each side lays the blame on another."))
	default:
		state = append(state, p.Pick("Not much has moved, and everybody watches everybody else.", "It is quiet, which nobody takes for an answer."))
	}
	if share, ok := firstShare(lastState(p.read)); ok {
		share = max(2, min(98, share+6*feeling+7*(p.Float()-0.62)))
		state = append([]string{fmt.Sprintf("The figure that everybody watches stands at %.0f percent after turn %d.", share, p.turn())}, state...)
	}
	out := map[string]any{
		"state": strings.Join(state, " "), "key_changes": nonNil(changes[:min(len(changes), 4)]),
		"consequences": []string{p.Pick("More talks before the next turn", "Somebody will have to move first", "The next turn is harder for those who waited", "Others outside begin to take an interest")},
		"hidden":       []string{},
	}
	if p.wants("black_swan") {
		out["black_swan"] = p.Pick("A storm that no forecast had cuts the region off for three days.", "A document that was meant to stay secret is printed in full in a newspaper.", "The most trusted person among those who negotiate resigns without giving a reason.")
	}
	return out
}

func firstShare(text string) (float64, bool) {
	m := shareRE.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	return f, err == nil && f <= 100
}

// summary lists the latest changes.
func (p *player) summary() string {
	source := p.read
	if strings.Contains(p.prompt, textSumUp) {
		source = p.prompt
	}
	var lines []string
	for _, m := range changeRE.FindAllStringSubmatch(source, -1) {
		lines = append(lines, strings.TrimRight(m[1], ".")+".")
	}
	if len(lines) == 0 {
		for _, m := range doneRE.FindAllStringSubmatch(source, -1) {
			lines = append(lines, strings.TrimRight(m[1], ".")+".")
		}
	}
	if len(lines) == 0 {
		return "Nothing of weight was done or said."
	}
	return "In short: " + strings.Join(lines[max(0, len(lines)-8):], " ")
}

// measure returns a value for the quoted words: the share they name, or a level that depends
// on their mood, on the turn and on the name of the metric.
func (p *player) measure() any {
	var quoted []string
	for _, m := range doneRE.FindAllStringSubmatch(p.read, -1) {
		quoted = append(quoted, m[1])
	}
	text := strings.Join(quoted, " ")
	name := firstMatch(nameRE, p.prompt, "metric")
	turn := p.measured()
	unsure := 0.02
	if worldsim.Small(p.model) {
		unsure = 0.06
	}
	good := 1.0
	if worldsim.HasWord(strings.ReplaceAll(strings.ToLower(name), "_", " "), "tension", "conflict", "risk", "unrest", "outage", "outages", "pressure", "harm", "load", "shortage", "concern", "strain") {
		good = -1
	}
	level := 0.25 + 0.35*hashFraction(name) + good*0.5*mood(text) + 0.015*turn + 0.2*(p.Float()-0.5)
	value := p.form.Properties["value"]
	out := map[string]any{"evidence": strings.TrimSpace(sentenceRE.FindString(text)), "known": p.Float() >= unsure && text != ""}
	level = max(0.01, min(0.99, level))
	switch {
	case len(value.Enum) > 0:
		out["value"] = value.Enum[int(level*float64(len(value.Enum)))]
	case value.Type == "boolean":
		out["value"] = turn > 0 && level+0.04*turn > 0.7
	default:
		out["value"] = p.number(value, level, text)
	}
	return out
}

// measured returns the turn that is measured.
func (p *player) measured() float64 {
	at := firstMatch(stateRE, p.read, "0")
	if m := decidedRE.FindStringSubmatch(p.read); m != nil {
		at = m[2]
	}
	turn, _ := strconv.ParseFloat(at, 64) // digits only
	return turn
}

func (p *player) number(value form, level float64, text string) float64 {
	share, ok := firstShare(text)
	if ok && value.Minimum == 0 && value.Maximum == 100 && strings.Contains(p.prompt, "percent") {
		return share
	}
	digits := 1.0
	if value.Maximum-value.Minimum < 20 {
		digits = 10
	}
	v := math.Round((value.Minimum+level*(value.Maximum-value.Minimum))*digits) / digits
	return max(value.Minimum, min(value.Maximum, v))
}

// check finds nothing in nine turns of ten.
func (p *player) check() any {
	issues := []map[string]string{}
	if p.Float() < 0.1 {
		severity := firstMatch(severityRE, p.prompt, "low")
		if p.Float() < 0.5 {
			severity = "low"
		}
		issues = append(issues, map[string]string{"severity": severity, "issue": p.Pick(
			"What is said to follow goes further than what was done.", "The account leaves out one of the actions of the turn.",
			"The reason that is given does not fit what was decided in the turn before.", "A number is not carried over from the situation before.")})
	}
	return map[string]any{"issues": issues, "explanation": p.Pick("Compared what was done with the situation after it.", "Went through the actions one by one.", "Held the turn against the one before.")}
}

// Texts of the prompts by which the stand-in recognizes its role and finds what it needs. The prompts are
// written with them. Those with verbs are formats of package fmt.
const (
	// textTakesPart, textMeasures and textChecks begin what is read by those who take part, measure and check.
	textTakesPart = "You take part in a simulation that is played in turns."
	textMeasures  = "You measure. Read what is quoted"
	textChecks    = "You check simulations."

	// textAtStart is the heading of the first situation, and textAfter the line before the one after a turn.
	textAtStart = "## The situation at the start"
	textAfter   = "The situation after turn %d:"
	// textDecided is the line before a decision that is measured: who decided, and in which turn.
	textDecided = "What %s decided in turn %d:"

	// textYouAre, textGoals and textLongRun begin what an actor is told: its name, the goals it set out with, one it has now.
	textYouAre  = "# You are %s"
	textGoals   = "The goals you set out with:"
	textLongRun = "- in the long run: "
	// textSumUp asks an actor to sum up what only it has read.
	textSumUp = "Sum up for yourself"

	// textDone and textOutside are the headings of what the narrator is told of a turn, and textTurn begins that of the question.
	textDone    = "## Done in turn %d"
	textOutside = "## From outside, in turn %d"
	textTurn    = "# Turn %d of %d"

	// textSeverity begins how bad the issues of a check are.
	textSeverity = "An issue is of %s severity"
)

var (
	meRE       = regexp.MustCompile(formatPattern(textYouAre))
	turnRE     = regexp.MustCompile(formatPattern(textTurn))
	stateRE    = regexp.MustCompile(formatPattern(textAfter))
	decidedRE  = regexp.MustCompile(formatPattern(textDecided))
	severityRE = regexp.MustCompile(formatPattern(textSeverity))
	longRunRE  = regexp.MustCompile(`(?m)^> ` + textLongRun + `(.+)$`)
	outsideRE  = regexp.MustCompile(`(?s)` + strings.ReplaceAll(textOutside, "%d", `\d+`) + `\n(.*?)\n\n`)
	eventRE    = regexp.MustCompile(`(?m)^- [^:\n]+: (.+)$`)
	doneRE     = regexp.MustCompile(`(?m)^> (.+)$`)
	changeRE   = regexp.MustCompile(`(?m)^> - (.+)$`)
	nameRE     = regexp.MustCompile(`(?m)^# (.+)$`)
	shareRE    = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(?:percent|%)`)
	sentenceRE = regexp.MustCompile(`[^.!?\n]{20,180}[.!?]`)
)

// formatPattern returns an expression for lines that begin with a format. It captures what replaces a verb.
func formatPattern(format string) string {
	return `(?m)^` + strings.NewReplacer("%d", `(\d+)`, "%s", `(.+)`).Replace(regexp.QuoteMeta(format))
}

// beforeVerb returns the text of a format before its first verb.
func beforeVerb(format string) string {
	text, _, _ := strings.Cut(format, "%")
	return text
}
