package evolve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// The formats of requests. The stand-in recognises requests by them.
const (
	// standinPrompt is the format of a prompt: its number and its text. Answered is the format of a problem, the expected
	// answer and the response. Case is the same for a problem that was answered wrongly.
	standinPrompt   = "<prompt number=%q>\n%s\n</prompt>"
	standinAnswered = "<problem>\n%s\n</problem>\n<expected>%s</expected>\n<response>\n%s\n</response>"
	standinCase     = "<case>\n" + standinAnswered + "\n</case>"
)

var (
	isPrompt   = regexp.MustCompile(written(standinPrompt))
	isAnswered = regexp.MustCompile(written(standinAnswered))
	isCase     = regexp.MustCompile(written(standinCase))
	aNumber    = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
)

// written returns a regular expression for texts of a format. It captures the text of each %s.
func written(format string) string {
	return `(?s)` + strings.NewReplacer("%q", `"[^"]*"`, "%s", `(.*?)`).Replace(regexp.QuoteMeta(format))
}

// breeder writes new prompts, and grades answers. It recognises both by the properties that they are to have.
//
// It combines the prompts it is shown and adds a phrase, which may help or not. If it is shown wrong answers, it
// considers three phrases and adds the one that helps it most.
func breeder(model string, req *llm.Request, seed uint64) (string, bool) {
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
		return breed(model, text, seed)
	case len(form.Properties) == 2 && form.Properties["reason"] != nil && form.Properties["correct"] != nil:
		return grade(text)
	}
	return "", false
}

func breed(model, text string, seed uint64) (string, bool) {
	d := worldsim.NewDice(seed)
	var lines []string
	prompts := isPrompt.FindAllStringSubmatch(text, -1)
	for i, m := range prompts {
		for line := range strings.SplitSeq(m[1], "\n") {
			// It keeps nearly all of the first prompt, and some of the others.
			if line = strings.TrimSpace(line); line != "" && (i == 0 && d.Next()%8 > 0 || i > 0 && d.Next()%3 == 0) {
				lines = append(lines, line)
			}
		}
	}
	tries := 1
	if isCase.MatchString(text) {
		tries = 3
	}
	best, highest := "", -1e9
	for range tries {
		advice := d.Pick(advice()...)
		if worth := appeal(model, advice); worth > highest && !strings.Contains(strings.Join(lines, "\n"), advice) {
			best, highest = advice, worth
		}
	}
	if best != "" {
		lines = append(lines, best)
	}
	b, err := json.Marshal(map[string]string{"prompt": strings.Join(lines, "\n")})
	return string(b), err == nil && len(prompts) > 0
}

// appeal returns how much a line helps a model.
func appeal(model, line string) float64 {
	sum := 0.0
	weights := tastes(strings.ToLower(model))
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

// grade compares the last number of a response with the expected one.
func grade(text string) (string, bool) {
	m := isAnswered.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	expected, numbers := strings.TrimSpace(m[2]), aNumber.FindAllString(m[3], -1)
	right := expected != "" && len(numbers) > 0 && numbers[len(numbers)-1] == expected
	return fmt.Sprintf(`{"reason":"The response comes to what it comes to.","correct":%v}`, right), true
}
