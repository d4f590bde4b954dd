package standin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// What requests are written with, and the stand-in knows them by.
const (
	// NewPrompt and GradeAnswer are the names of the forms of answers.
	NewPrompt   = "new_prompt"
	GradeAnswer = "grade_answer"
	// Prompt is the format of a prompt: its number and its text. Answered is that of a problem, what was expected
	// and what was answered, and Case that of one that went wrong.
	Prompt   = "<prompt number=%q>\n%s\n</prompt>"
	Answered = "<problem>\n%s\n</problem>\n<expected>%s</expected>\n<response>\n%s\n</response>"
	Case     = "<case>\n" + Answered + "\n</case>"
)

var (
	isPrompt   = regexp.MustCompile(written(Prompt))
	isAnswered = regexp.MustCompile(written(Answered))
	isCase     = regexp.MustCompile(written(Case))
	aNumber    = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
)

// written is an expression for what is written with a format. It captures what stands in the place of %s.
func written(format string) string {
	return `(?s)` + strings.NewReplacer("%q", `"[^"]*"`, "%s", `(.*?)`).Replace(regexp.QuoteMeta(format))
}

// breeder writes new prompts, and grades answers. It recognises both by the name of the form they are to have.
//
// It puts together what it was shown and adds something of its own, which may help or not;
// shown what went wrong, it looks at three things to add and takes the one that suits its own
// tastes best.
func breeder(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) == 0 {
		return "", false
	}
	text := req.Messages[len(req.Messages)-1].Text()
	switch req.Schema.Name {
	case NewPrompt:
		return breed(model, text, seed)
	case GradeAnswer:
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
			// Of the first prompt nearly everything is kept, of others some.
			if line = strings.TrimSpace(line); line != "" && (i == 0 && d.Next()%8 > 0 || i > 0 && d.Next()%3 == 0) {
				lines = append(lines, line)
			}
		}
	}
	tries := 1
	if isCase.MatchString(text) {
		tries = 3
	}
	best, most := "", -1e9
	for range tries {
		advice := d.Pick(advice()...)
		if worth := appeal(model, advice); worth > most && !strings.Contains(strings.Join(lines, "\n"), advice) {
			best, most = advice, worth
		}
	}
	if best != "" {
		lines = append(lines, best)
	}
	b, err := json.Marshal(map[string]string{"prompt": strings.Join(lines, "\n")})
	return string(b), err == nil && len(prompts) > 0
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
func grade(text string) (string, bool) {
	m := isAnswered.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	expected, numbers := strings.TrimSpace(m[2]), aNumber.FindAllString(m[3], -1)
	right := expected != "" && len(numbers) > 0 && numbers[len(numbers)-1] == expected
	return fmt.Sprintf(`{"reason":"The response comes to what it comes to.","correct":%v}`, right), true
}
