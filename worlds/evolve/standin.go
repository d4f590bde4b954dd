package evolve

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
	"parley/worlds/evolve/problem"
)

// standInAnswer solves, breeds or grades for the simulated provider, as the request asks. An answer depends only on the
// arguments. It does not show how good a model is: what helps a simulated model is made up.
func standInAnswer(model string, req *llm.Request, seed uint64) (string, bool) {
	if text, ok := standInSolver(model, req, seed); ok {
		return text, true
	}
	return standInBreeder(model, req, seed)
}

// standInSolver answers the word problems of problem.Arithmetic. It recognises them in the last message.
//
// How often it is right depends on the habits that the prompt asks for (working step by step, listing the facts,
// checking, …), on how hard the problem is, and on the model's name. The name decides which habits help, which do
// nothing and which do harm, so that each name is another landscape to climb. A model whose name contains flat is right
// equally often with every prompt.
//
// Unless the prompt says how to end an answer, the solver sometimes adds a sentence with another number, which a
// checker may read as the answer.
func standInSolver(model string, req *llm.Request, seed uint64) (string, bool) {
	if len(req.Messages) == 0 || req.Schema != nil {
		return "", false
	}
	last := req.Messages[len(req.Messages)-1].Text()
	begins, totals, ok := problem.SolveArithmetic(last)
	if !ok {
		return "", false
	}
	before := []string{last[:begins]}
	for _, m := range req.Messages[:len(req.Messages)-1] {
		before = append(before, m.Text())
	}
	prompt := strings.ToLower(strings.Join(before, "\n"))
	d := worldsim.NewDice(seed)
	chance := solveRate(model, prompt, last[begins:], len(totals)-1)
	right := d.Float() < chance
	answer := totals[len(totals)-1]
	if !right {
		answer = wrongAnswer(d, totals)
	}
	if isFlat(model) {
		return fmt.Sprintf("There are %d at the end.", answer), true
	}
	return writeSolution(d, prompt, totals, answer), true
}

// isFlat reports whether prompts make no difference to a model.
func isFlat(model string) bool { return strings.Contains(strings.ToLower(model), "flat") }

// solveRate returns the probability that a problem of that many steps is solved.
func solveRate(model, prompt, question string, steps int) float64 {
	name := strings.ToLower(model)
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + question)) // never fails
	own := worldsim.NewDice(h.Sum64())      // each model finds other problems hard
	score := 1.2*(own.Float()-0.5) - 0.25*float64(steps-3)
	switch {
	case isFlat(name):
		return logistic(score)
	case worldsim.Small(name):
		score -= 0.4
	case worldsim.Large(name):
		score += 0.4
	}
	score -= 0.8
	weights := habitWeights(name)
	for i, h := range habits() {
		if h.in(prompt) {
			score += weights[i]
		}
	}
	if worldsim.HasWord(prompt, "brief", "quick", "guess") && !strings.Contains(prompt, "not guess") {
		score -= 0.7
	}
	if words := len(strings.Fields(prompt)); words > 70 {
		score -= 0.01 * float64(words-70) // a long prompt does harm
	}
	return logistic(score)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// habit is something that a prompt can ask for.
type habit struct{ signs []string }

func (h habit) in(prompt string) bool {
	for _, s := range h.signs {
		if strings.Contains(prompt, s) {
			return true
		}
	}
	return false
}

func habits() []habit {
	return []habit{
		{[]string{"step by step", "one step at a time", "each step", "slowly"}},
		{[]string{"list the", "what is known", "write down the facts"}},
		{[]string{"check", "verify"}},
		{[]string{"unit"}},
		{[]string{"in your own words", "restate"}},
		{[]string{"equation"}},
		{[]string{"estimate", "roughly"}},
		{[]string{"irrelevant", "ignore"}},
		{[]string{"in the order", "in order", "first to last"}},
		{[]string{"running total", "subtotal", "after each"}},
		{[]string{"careful", "expert", "patient"}},
		{[]string{"example"}},
	}
}

// habitWeights returns how much each habit helps a model: the same numbers for every model, shuffled by its name.
func habitWeights(name string) []float64 {
	weights := []float64{1.1, 0.9, 0.8, 0.7, 0.5, 0, -0.4, -0.6, -0.7, -0.8, -0.9, -1}
	h := fnv.New64a()
	_, _ = h.Write([]byte("tastes of " + name)) // never fails
	d := worldsim.NewDice(h.Sum64())
	for i := len(weights) - 1; i > 0; i-- {
		j := d.Next() % uint64(i+1)
		weights[i], weights[j] = weights[j], weights[i]
	}
	return weights
}

// wrongAnswer makes a mistake: it stops early, or miscounts.
func wrongAnswer(d *worldsim.Dice, totals []int) int {
	answer := totals[len(totals)-1]
	if early := totals[d.Next()%uint64(len(totals))]; early != answer && d.Next()%2 == 0 {
		return early
	}
	return answer + 1 + int(d.Next()%9)
}

// writeSolution writes an answer, in full if the prompt asks to show the work.
func writeSolution(d *worldsim.Dice, prompt string, totals []int, answer int) string {
	var b strings.Builder
	if habits()[0].in(prompt) || strings.Contains(prompt, "work") || strings.Contains(prompt, "explain") {
		for i, n := range totals[:len(totals)-1] {
			fmt.Fprintf(&b, "%d. Now there are %d.\n", i+1, n)
		}
	} else {
		b.WriteString(d.Pick("", "Let me see. ", "I count what comes and goes. "))
	}
	switch {
	case strings.Contains(prompt, "####"):
		fmt.Fprintf(&b, "#### %d", answer)
	case strings.Contains(prompt, "answer:"):
		fmt.Fprintf(&b, "Answer: %d", answer)
	case d.Next()%8 == 0:
		fmt.Fprintf(&b, "There are %d at the end, after %d changes.", answer, len(totals)-1)
	default:
		b.WriteString(d.Pick(fmt.Sprintf("There are %d at the end.", answer), fmt.Sprintf("That makes %d.", answer), fmt.Sprint(answer)))
	}
	return b.String()
}

// The formats of requests. The stand-in recognises requests by them.
const (
	// promptFormat has the number and the text of a prompt. answeredFormat has a problem, the expected answer and the
	// response. caseFormat is the same for a problem that was answered wrongly.
	promptFormat   = "<prompt number=%q>\n%s\n</prompt>"
	answeredFormat = "<problem>\n%s\n</problem>\n<expected>%s</expected>\n<response>\n%s\n</response>"
	caseFormat     = "<case>\n" + answeredFormat + "\n</case>"
	// gameBegins begins what the breeder is told about a text of a nested plan.
	gameBegins = "A text, "
	// episodeFormat has the result of an episode of a nested plan, and what happened in it.
	episodeFormat = "<episode result=%q>\n%s\n</episode>"
)

var (
	promptRE   = regexp.MustCompile(formatPattern(promptFormat))
	answeredRE = regexp.MustCompile(formatPattern(answeredFormat))
	caseRE     = regexp.MustCompile(formatPattern(caseFormat))
	numberRE   = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
)

// formatPattern returns a regular expression for texts of a format. It captures the text of each %s.
func formatPattern(format string) string {
	return `(?s)` + strings.NewReplacer("%q", `"[^"]*"`, "%s", `(.*?)`).Replace(regexp.QuoteMeta(format))
}

// standInBreeder writes new prompts, and grades answers. It recognises both by the properties that they are to have.
//
// It combines the prompts it is shown and adds a phrase, which may help or not. If it is shown wrong answers, it
// considers three phrases and adds the one that helps it most.
func standInBreeder(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) == 0 {
		return "", false
	}
	text := req.Messages[len(req.Messages)-1].Text()
	var form struct{ Properties map[string]any }
	if json.Unmarshal(req.Schema.JSON, &form) != nil {
		return "", false
	}
	switch {
	case len(form.Properties) == 1 && form.Properties["prompt"] != nil:
		return breedPrompt(model, text, seed)
	case len(form.Properties) == 2 && form.Properties["reason"] != nil && form.Properties["correct"] != nil:
		return gradeAnswer(text)
	}
	return "", false
}

func breedPrompt(model, text string, seed uint64) (string, bool) {
	d := worldsim.NewDice(seed)
	var lines []string
	prompts := promptRE.FindAllStringSubmatch(text, -1)
	for i, m := range prompts {
		for line := range strings.SplitSeq(m[1], "\n") {
			// It keeps nearly all of the first prompt, and some of the others.
			if line = strings.TrimSpace(line); line != "" && (i == 0 && d.Next()%8 > 0 || i > 0 && d.Next()%3 == 0) {
				lines = append(lines, line)
			}
		}
	}
	all := advice()
	if strings.HasPrefix(text, gameBegins) {
		all = manners()
	}
	tries := 1
	if caseRE.MatchString(text) || strings.Contains(text, "<episode result=") {
		tries = 3
	}
	best, highest := "", -1e9
	for range tries {
		advice := d.Pick(all...)
		if worth := adviceWeight(model, advice); worth > highest && !strings.Contains(strings.Join(lines, "\n"), advice) {
			best, highest = advice, worth
		}
	}
	if best != "" {
		lines = append(lines, best)
	}
	b, err := json.Marshal(map[string]string{"prompt": strings.Join(lines, "\n")})
	return string(b), err == nil && len(prompts) > 0
}

// adviceWeight returns how much a line helps a model.
func adviceWeight(model, line string) float64 {
	sum := 0.0
	weights := habitWeights(strings.ToLower(model))
	for i, h := range habits() {
		if h.in(strings.ToLower(line)) {
			sum += weights[i]
		}
	}
	return sum
}

func advice() []string {
	return []string{
		"Go through what happens one step at a time.", "List the facts before you begin.", "Verify your result at the end.", "Think of the unit of each number.",
		"Restate the question first.", "Set up an equation.", "Roughly estimate what should come out.", "Leave irrelevant details aside.",
		"Deal with events in order.", "Note the total after each event.", "Work like an expert.", "Compare it with an example you know.",
		"Trust yourself.", "Enjoy the problem.", "Write clearly.", "Put the result after #### on the last line.",
	}
}

// manners are sentences for texts of nested plans. What they do there is up to the stand-in of that kind.
func manners() []string {
	return []string{
		"Be careful with what you say.", "Stay guarded.", "Be quiet about yourself.", "Be wary of questions.", "Be honest.", "Be bold.", "Hurry.",
		"Be friendly.", "Ask many questions.", "Keep your answers short.", "Listen first.", "Speak openly.",
	}
}

// gradeAnswer compares the last number of a response with the expected one.
func gradeAnswer(text string) (string, bool) {
	m := answeredRE.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	expected, numbers := strings.TrimSpace(m[2]), numberRE.FindAllString(m[3], -1)
	right := expected != "" && len(numbers) > 0 && numbers[len(numbers)-1] == expected
	return fmt.Sprintf(`{"reason":"The response comes to what it comes to.","correct":%v}`, right), true
}
