package rollout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
	"parley/worlds/rollout/env"
)

// standInText plays the environments that come with Parley for the simulated provider, moderately well. It
// recognizes an environment by the rules in its system message. Its answers are sometimes good and sometimes
// not, so that the episodes of a group differ. An answer depends only on the arguments, and no prompt makes it
// panic or run long.
//
// It does not answer other requests, or requests with a schema or with tools of others. Where there are tools,
// standInCalls is asked first.
//
// Models with small, mini, nano or tiny in their names are a little worse than others, and those with large,
// pro, max or huge a little better.
func standInText(model string, req *llm.Request, seed uint64) (string, bool) {
	rules := worldsim.Instructions(req)
	if req.Schema != nil || len(req.Tools) > 0 && !strings.Contains(rules, shopSign) {
		return "", false
	}
	for _, g := range games() {
		if strings.Contains(rules, g.sign) {
			t := &turn{Rand: rand.New(rand.NewPCG(seed, 0)), skill: skill(model), rules: rules}
			t.read(req.Messages)
			return g.play(t)
		}
	}
	return "", false
}

// game is an environment: a text of its rules that no other has, and how to play it.
type game struct {
	sign string
	play func(*turn) (string, bool)
}

func games() []game {
	return []game{
		{`put the final answer last, in \boxed{}`, (*turn).calculate},
		{"Count: answer each number with the next one", (*turn).count},
		{"The way out is in the room furthest to the south-east", (*turn).walk},
		{"End what you say with OFFER and a whole number", (*turn).bargain},
		{"Put the expression last, in <answer> and </answer>", (*turn).express},
		{"Find a hidden word of five letters", (*turn).guess},
		{shopSign, (*turn).addUp},
	}
}

// turn is what a player knows at its turn.
type turn struct {
	*rand.Rand

	skill   float64 // probability of a good move
	rules   string
	prompts []string // messages of the environment, which may be cut to the latest
	answers []string // its own answers
	all     []llm.Message
}

func (t *turn) read(messages []llm.Message) {
	t.all = messages
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			t.prompts = append(t.prompts, m.Text())
		case llm.RoleAssistant:
			t.answers = append(t.answers, m.Text())
		}
	}
}

// question returns the message to answer.
func (t *turn) question() string {
	if len(t.prompts) == 0 {
		return ""
	}
	return t.prompts[len(t.prompts)-1]
}

// fails reports whether something with this chance of success goes wrong.
func (t *turn) fails(chance float64) bool { return t.Float64() >= chance }

func (t *turn) pick(from ...string) string { return from[t.IntN(len(from))] }

// skill returns the skill of a model, by its name.
func skill(model string) float64 {
	switch {
	case worldsim.Small(model):
		return 0.55
	case worldsim.Large(model):
		return 0.8
	default:
		return 0.68
	}
}

var (
	sumAsked   = regexp.MustCompile(`What is (\d{1,9}(?: [-+*] \d{1,9}){1,20})\?\s*$`)
	quantityRE = regexp.MustCompile(`\d{1,6}:\d{2}\b|\d{1,9}|[a-z]+`)
	lastNumber = regexp.MustCompile(`(\d{1,9})\D*$`)
)

// calculate solves a sum, operation by operation, each of which may go wrong: products more often than sums.
// It guesses the answer of other questions.
func (t *turn) calculate() (string, bool) {
	if t.question() == "" {
		return "", false
	}
	m := sumAsked.FindStringSubmatch(t.question())
	if m == nil {
		return t.estimate(), true
	}
	fields := strings.Fields(m[1])
	inOrder := t.fails(1 - (1-t.skill)/3)
	var work strings.Builder
	terms, signs := []int{parseDigits(fields[0])}, []string{}
	for i := 1; i+1 < len(fields); i += 2 {
		last, n := len(terms)-1, parseDigits(fields[i+1])
		if fields[i] == "*" || inOrder {
			terms[last] = t.operation(&work, terms[last], fields[i], n)
			continue
		}
		terms, signs = append(terms, n), append(signs, fields[i])
	}
	answer := terms[0]
	for i, sign := range signs {
		answer = t.operation(&work, answer, sign, terms[i+1])
	}
	return fmt.Sprintf("%s\\boxed{%d}", work.String(), answer), true
}

// operation does one step of a sum and writes it down.
func (t *turn) operation(work *strings.Builder, a int, sign string, b int) int {
	result, chance := a+b, 1-0.3*(1-t.skill)
	switch sign {
	case "-":
		result = a - b
	case "*":
		result, chance = a*b, 1-0.7*(1-t.skill)
	}
	if t.fails(chance) {
		result += []int{-10, -2, -1, 1, 2, 10}[t.IntN(6)]
	}
	fmt.Fprintf(work, "%d %s %d = %d\n", a, sign, b, result)
	return result
}

// estimate combines the numbers of a question in a random way, which is sometimes right.
func (t *turn) estimate() string {
	numbers := quantities(t.question())
	if len(numbers) == 0 {
		return fmt.Sprintf("I can only guess.\n\\boxed{%d}", 1+t.IntN(20))
	}
	t.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	answer := numbers[0]
	for _, n := range numbers[1:] {
		switch op := t.IntN(4); {
		case op == 0:
			answer += n
		case op == 1 && answer < 1_000_000 && n < 1_000_000:
			answer *= n
		case op == 2 && n > 0 && answer%n == 0:
			answer /= n
		default:
			answer = max(answer-n, n-answer)
		}
	}
	return fmt.Sprintf("%s\n\\boxed{%d}", t.pick("I put the numbers together.", "That should be it.", "I am not sure."), answer)
}

// quantities returns the first numbers of a text: in digits, in words, and times of day in minutes.
func quantities(text string) (out []int) {
	names := strings.Fields("two three four five six seven eight nine ten eleven twelve")
	for _, word := range quantityRE.FindAllString(strings.ToLower(text), 400) {
		if hours, minutes, ok := strings.Cut(word, ":"); ok {
			out = append(out, parseDigits(hours)*60+parseDigits(minutes))
		} else if word[0] <= '9' {
			out = append(out, parseDigits(word))
		}
		for i, name := range names {
			if word == name {
				out = append(out, i+2)
			}
		}
		if len(out) == 5 {
			break
		}
	}
	return out
}

// count returns the next number, or one near it.
func (t *turn) count() (string, bool) {
	m := lastNumber.FindStringSubmatch(t.question())
	if m == nil {
		return "", false
	}
	next := parseDigits(m[1]) + 1
	if t.fails(t.skill) {
		next += []int{-1, 1, 10}[t.IntN(3)]
	}
	return strconv.Itoa(next), true
}

// parseDigits reads a number that a pattern matched. It returns 0 for one that is too large.
func parseDigits(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

var (
	firstPuzzle = regexp.MustCompile(`The numbers are (\d[\d, ]*)\. Make (\d{1,9})\.`)
	sameAgain   = regexp.MustCompile(`Try again: make (\d{1,9}) of (\d[\d, ]*)\.`)
	digits      = regexp.MustCompile(`\d{1,9}`)
)

// express tries random expressions, more with more skill, and answers with the one closest to the target.
func (t *turn) express() (string, bool) {
	var list string
	var target int
	if m := sameAgain.FindStringSubmatch(t.question()); m != nil {
		list, target = m[2], parseDigits(m[1])
	} else if m := firstPuzzle.FindStringSubmatch(t.question()); m != nil {
		list, target = m[1], parseDigits(m[2])
	} else {
		return "", false
	}
	var given []int
	for _, d := range digits.FindAllString(list, 8) {
		given = append(given, parseDigits(d))
	}
	best, missed := fmt.Sprint(given[0]), 1<<40
	for range int(80 * t.skill * t.skill) {
		if text, by := t.combine(given, target); by < missed {
			best, missed = text, by
		}
	}
	said := "I have come close, but not closer."
	if missed == 0 {
		said = t.pick("That works out.", "I have tried some, and this is it.")
	}
	return fmt.Sprintf("%s\n<answer>%s</answer>", said, best), true
}

// combine combines the numbers in random order until the target is reached, and returns by how much it missed.
func (t *turn) combine(given []int, target int) (text string, missed int) {
	order := t.Perm(len(given))
	value := given[order[0]]
	text = fmt.Sprint(value)
	for i, k := range order[1:] {
		if value == target {
			break
		}
		if i > 0 {
			text = "(" + text + ")"
		}
		n, sign := given[k], "+"
		switch op := t.IntN(4); {
		case op == 0 && value < 1_000_000 && n < 1_000_000:
			value, sign = value*n, "*"
		case op == 1 && value > n:
			value, sign = value-n, "-"
		case op == 2 && n > 0 && value%n == 0:
			value, sign = value/n, "/"
		default:
			value += n
		}
		text += fmt.Sprintf(" %s %d", sign, n)
	}
	return text, max(value-target, target-value)
}

var clueRE = regexp.MustCompile(`^([a-z]{5}): ([-+?]{5})\.`)

// clue is what is known of a guess.
type clue struct{ guess, marks string }

// guess returns a word that fits every clue, or any word.
func (t *turn) guess() (string, bool) {
	if t.question() == "" {
		return "", false
	}
	var clues []clue
	for _, text := range t.prompts {
		if m := clueRE.FindStringSubmatch(text); m != nil {
			clues = append(clues, clue{m[1], m[2]})
		}
	}
	words := vocabulary()
	word := t.pick(words...)
	if !t.fails(t.skill) {
		// It considers only some of the words.
		for range int(200 * t.skill) {
			if agrees(word, clues) {
				break
			}
			word = t.pick(words...)
		}
	}
	return t.pick("", "I say ", "It may be ", "My guess: ") + word, true
}

func agrees(word string, clues []clue) bool {
	for _, c := range clues {
		if env.WordHint(word, c.guess) != c.marks {
			return false
		}
	}
	return true
}

// vocabulary returns the words it knows.
func vocabulary() []string {
	return strings.Fields(`
		about above actor adult after again agent agree alarm album alert alone angel anger angle apple apron arrow
		badge beach beard berry birth black blade blame blind block blood board bread brick bride bring broad brown
		brush cabin cable candy carry chain chair chalk chase cheek chess chest child clean clear climb clock cloth
		cloud coach coast color couch cover crane cream crown curve dance dozen drama dream dress drift drink drive
		eagle early earth elbow empty enjoy enter fable faith fancy fence fever field flame flock floor flour forty
		frame fresh frost fruit funny ghost giant glass glove grain grape grass great green guest happy heart heavy
		honey horse hotel house human hurry index ivory jelly jewel jolly judge juice knife known label labor large
		laugh layer lemon level light limit linen lunch magic maple march match medal melon mercy metal minor money
		month motor mouse mouth music nerve never night noble noise north novel nurse ocean olive onion order organ
		paint panel paper party peach pearl piano pilot plain plant plate point pride prize queen quick quiet radio
		ranch raven reach rider right river roast robin rough round royal salad sauce scale scarf shade shape sharp
		sheep shelf shine shirt shore short skill skirt sleep smile smoke snake solid south space spice spoon stage
		stair steam stone storm story straw sugar sweet table taste teach thing thumb tiger title toast today tooth
		tower trade train trust truth uncle under union upper value video visit voice wagon watch water wheat wheel
		white woman world worry wrist young youth zebra`)
}

var (
	exitsSeen = regexp.MustCompile(`There are doors to the ((?:north|east|south|west)(?: and the (?:north|east|south|west))*)\.\s*$`)
	exitName  = regexp.MustCompile(`north|east|south|west`)
	walked    = regexp.MustCompile(`^You walk (north|east|south|west)\.`)
)

// walk follows the wall on its right, which leads through any maze without loops. Sometimes it takes any door,
// or none.
func (t *turn) walk() (string, bool) {
	m := exitsSeen.FindStringSubmatch(t.question())
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
	for _, text := range slices.Backward(t.prompts) {
		if m := walked.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

func (t *turn) heading(to string) string {
	return t.pick("", "", "I go ", "I try the door to the ", "Let me see what is there: ") + to
}

var (
	ownLimit  = regexp.MustCompile(`worth (\d{1,9}) to you`)
	lineCount = regexp.MustCompile(`(\d{1,9}) times in all`)
	highest   = regexp.MustCompile(`whole number from 1 to (\d{1,9})`)
	onTable   = regexp.MustCompile(`(?:^|\n)(\d{1,9}) is on the table\.\s*$`)
	ownOffer  = regexp.MustCompile(`OFFER (\d{1,9})$`)
)

// deal is a negotiation as one side sees it.
type deal struct {
	*turn

	sign    int // 1: sells, -1: buys
	limit   int
	largest int
	left    int // utterances left, with this one
	table   int // the price that can be accepted; 0: none
}

// bargain opens high, concedes step by step, and accepts an offer that is no worse than its next one. Near the
// end it mostly accepts any gain.
func (t *turn) bargain() (string, bool) {
	limit, lines, high := ownLimit.FindStringSubmatch(t.rules), lineCount.FindStringSubmatch(t.rules), highest.FindStringSubmatch(t.rules)
	if limit == nil || lines == nil || high == nil || t.question() == "" {
		return "", false
	}
	d := deal{turn: t, sign: 1, limit: parseDigits(limit[1]), largest: max(1, parseDigits(high[1]))}
	d.left = parseDigits(lines[1]) - 2*len(t.answers)
	if strings.Contains(t.rules, "You want to buy") {
		d.sign = -1
		d.left--
	}
	if m := onTable.FindStringSubmatch(t.question()); m != nil {
		d.table = parseDigits(m[1])
	}
	next := d.next()
	if d.table > 0 && d.accepts(next) {
		return t.pick("That is fair. ACCEPT", "We have a deal. ACCEPT", "Well, then. ACCEPT"), true
	}
	return fmt.Sprintf("%s OFFER %d", t.pick("It is a fine lamp.", "Let us meet somewhere.", "I can move a little.", "That is my price for now."), next), true
}

// gain returns what a price is worth to this side.
func (d *deal) gain(price int) int { return d.sign * (price - d.limit) }

// next returns the price to ask for now: at first one on its side of the limit, then one closer to the limit
// or to the offer on the table.
func (d *deal) next() int {
	worst := 0
	if d.table > 0 && !d.fails(d.skill) {
		worst = max(0, d.gain(d.table))
	}
	for _, said := range slices.Backward(d.answers) {
		if m := ownOffer.FindStringSubmatch(said); m != nil {
			kept := 0.85 - d.Float64()*(1-d.skill)
			return d.price(float64(worst) + float64(d.gain(parseDigits(m[1]))-worst)*kept)
		}
	}
	room := d.largest - d.limit
	if d.sign < 0 {
		room = d.limit - 1
	}
	return d.price(float64(room) * (0.2 + 0.6*d.Float64()))
}

// price returns the price with a gain, within the allowed range.
func (d *deal) price(gain float64) int {
	return min(max(d.limit+d.sign*int(gain), 1), d.largest)
}

func (d *deal) accepts(next int) bool {
	gain := d.gain(d.table)
	switch {
	case gain < 0:
		return false
	case gain >= d.gain(next):
		return true
	case d.left <= 1:
		return gain > 0 || !d.fails(0.5)
	case d.left <= 3:
		return gain > 0 && !d.fails(d.skill)
	default:
		return gain > 0 && d.fails(0.8+0.2*d.skill) // too soon
	}
}

const shopSign = "Only the tool price knows the price of an item"

var orderLine = regexp.MustCompile(`(\d{1,9}) x ([a-z]+)`)

// standInCalls returns the calls of tools with which a model answers the prompt of an environment, or false if it answers
// with a text.
func standInCalls(model string, req *llm.Request, seed uint64) ([]llm.ToolCall, bool) {
	if len(req.Tools) != 1 || req.Tools[0].Name != "price" || !strings.Contains(worldsim.Instructions(req), shopSign) {
		return nil, false
	}
	t := &turn{Rand: rand.New(rand.NewPCG(seed, 0)), skill: skill(model), all: req.Messages}
	prices, asked := t.prices()
	var calls []llm.ToolCall
	for _, line := range t.order() {
		if _, known := prices[line.item]; known || asked[line.item] && t.fails(t.skill) {
			continue
		}
		args, err := json.Marshal(map[string]string{"item": line.item})
		if err != nil {
			return nil, false
		}
		calls = append(calls, llm.ToolCall{Name: "price", Arguments: string(args)})
		if t.fails(0.5) {
			break // one at a time, or several at once
		}
	}
	return calls, len(calls) > 0
}

// orderedItem is a line of an order.
type orderedItem struct {
	n    int
	item string
}

func (t *turn) order() (lines []orderedItem) {
	for _, m := range t.all {
		if m.Role != llm.RoleUser {
			continue
		}
		for _, found := range orderLine.FindAllStringSubmatch(m.Text(), -1) {
			lines = append(lines, orderedItem{parseDigits(found[1]), found[2]})
		}
	}
	return lines
}

// prices returns the prices that the tool answered, and the items that it was asked for.
func (t *turn) prices() (known map[string]int, asked map[string]bool) {
	known, asked = map[string]int{}, map[string]bool{}
	of := map[string]string{} // items by call
	for _, m := range t.all {
		for _, c := range m.ToolCalls {
			var in struct{ Item string }
			if json.Unmarshal([]byte(c.Arguments), &in) == nil {
				of[c.ID], asked[in.Item] = in.Item, true
			}
		}
		if m.Role == llm.RoleTool && !m.ToolFailed {
			known[of[m.ToolCallID]] = parseDigits(m.Text())
		}
	}
	return known, asked
}

// addUp answers with the total, which is sometimes wrong, and 0 if the order was cut from the prompt.
func (t *turn) addUp() (string, bool) {
	prices, _ := t.prices()
	total := 0
	for _, line := range t.order() {
		total += line.n * prices[line.item]
	}
	if t.fails(t.skill + 0.15) {
		total += 1 + t.IntN(5)
	}
	return fmt.Sprintf("The order costs \\boxed{%d}.", total), true
}
