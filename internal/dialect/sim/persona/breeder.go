package persona

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/llm"
)

// The names of the schemas that the world named evolve asks with.
const (
	newPrompt   = "new_prompt"
	gradeAnswer = "grade_answer"
)

var (
	promptTag    = regexp.MustCompile(`(?s)<prompt[^>]*>\n?(.*?)\n?</prompt>`)
	expectedTag  = regexp.MustCompile(`(?s)<expected>\s*(.*?)\s*</expected>`)
	responseTag  = regexp.MustCompile(`(?s)<response>\s*(.*?)\s*</response>`)
	lastNumberRE = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
)

// Breeder writes new prompts for the world named evolve, and grades answers for it. It
// recognises both by the name of the schema they are to follow.
//
// It puts together what it was shown and adds something of its own, which may help or not;
// shown what went wrong, it looks at three things to add and takes the one that suits its own
// tastes best.
func Breeder(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) == 0 {
		return "", false
	}
	text := req.Messages[len(req.Messages)-1].Text()
	switch req.Schema.Name {
	case newPrompt:
		return breed(model, text, seed), true
	case gradeAnswer:
		return grade(text), true
	}
	return "", false
}

func breed(model, text string, seed uint64) string {
	d := &dice{seed}
	var lines []string
	for i, m := range promptTag.FindAllStringSubmatch(text, -1) {
		for line := range strings.SplitSeq(m[1], "\n") {
			// Of the first prompt nearly everything is kept, of others some.
			if line = strings.TrimSpace(line); line != "" && (i == 0 && d.next()%8 > 0 || i > 0 && d.next()%3 == 0) {
				lines = append(lines, line)
			}
		}
	}
	tries := 1
	if strings.Contains(text, "<case>") {
		tries = 3
	}
	best, most := "", -1e9
	for range tries {
		advice := d.pick(advice()...)
		if worth := appeal(model, advice); worth > most && !strings.Contains(strings.Join(lines, "\n"), advice) {
			best, most = advice, worth
		}
	}
	if best != "" {
		lines = append(lines, best)
	}
	b, err := json.Marshal(map[string]string{"prompt": strings.Join(lines, "\n")})
	if err != nil {
		return "{}" // not reached: it is text
	}
	return string(b)
}

// appeal is how much a line helps a model.
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

// grade compares the last number of a response with what was expected.
func grade(text string) string {
	expected, response := within(expectedTag, text), within(responseTag, text)
	numbers := lastNumberRE.FindAllString(response, -1)
	right := expected != "" && len(numbers) > 0 && numbers[len(numbers)-1] == expected
	return fmt.Sprintf(`{"reason":"The response comes to what it comes to.","correct":%v}`, right)
}

func within(tag *regexp.Regexp, text string) string {
	if m := tag.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
