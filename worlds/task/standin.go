package task

import (
	"regexp"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// solved are the questions of the example tasks, as expressions, and the commands that answer them. $1 and $2 are the names in the question.
func solved() [][2]string {
	return [][2]string{
		{"Write the text `([^`]*)` to the file `([^`]*)`", "printf '%s\\n' '$1' > $2"},
		{"Sort the lines of `([^`]*)` and write them to `([^`]*)`", "sort $1 > $2"},
		{"Count the lines of `([^`]*)` that contain `([^`]*)`", "grep -c '$2' $1 > count.txt"},
		{"Write the text of `([^`]*)` in upper case to `([^`]*)`", "tr a-z A-Z < $1 > $2"},
		{"Write each line of `([^`]*)` once, sorted, to `([^`]*)`", "sort -u $1 > $2"},
		{"Add up the numbers in `([^`]*)`, one on each line, and write the sum to `([^`]*)`", "s=0; while read n; do s=$$((s+n)); done < $1; echo $$s > $2"},
		{"Write the lines of `([^`]*)` in reverse order to `([^`]*)`", "sed -n '1!G;h;$$p' $1 > $2"},
		{"Rename the file `([^`]*)` to `([^`]*)`", "mv $1 $2"},
		{"Replace every `([^`]*)` in `text.txt` with `([^`]*)`", "sed 's/$1/$2/g' text.txt > new && mv new text.txt"},
		{"Write the longest line of `([^`]*)` to `([^`]*)`", "awk '{ if (length($$0) > length(l)) l = $$0 } END { print l }' $1 > $2"},
	}
}

// standIn answers as an agent that works by blocks of shell commands. The model large is always right; others write to the wrong file one time in
// three.
func standIn(model string, req *llm.Request, seed uint64) (string, bool) {
	if len(req.Messages) == 0 || req.Schema != nil {
		return "", false
	}
	for i := range req.Messages {
		if req.Messages[i].Role != llm.RoleUser {
			continue
		}
		question := req.Messages[i].Text()
		for _, s := range solved() {
			re := regexp.MustCompile(s[0])
			m := re.FindStringSubmatchIndex(question)
			if m == nil {
				continue
			}
			if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text(), "exit code ") {
				return "Done.", true
			}
			commands := string(re.ExpandString(nil, s[1], question, m))
			if model != "large" && worldsim.NewDice(seed).Float() < 1./3 {
				commands = "mkdir -p elsewhere && cd elsewhere\n" + commands
			}
			return "```sh\n" + commands + "\n```", true
		}
	}
	return "", false
}
