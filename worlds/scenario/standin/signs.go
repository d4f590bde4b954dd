package standin

import (
	"regexp"
	"strings"
)

// Texts of the prompts by which the stand-in recognizes its role and finds what it needs. The prompts are
// written with them. Those with verbs are formats of package fmt.
const (
	// TakesPart, Measures and Checks begin what is read by those who take part, measure and check.
	TakesPart = "You take part in a simulation that is played in turns."
	Measures  = "You measure. Read what is quoted"
	Checks    = "You check simulations."

	// AtStart is the heading of the first situation, and After the line before the one after a turn.
	AtStart = "## The situation at the start"
	After   = "The situation after turn %d:"
	// Decided is the line before a decision that is measured: who decided, and in which turn.
	Decided = "What %s decided in turn %d:"

	// YouAre, Goals and InTheLongRun begin what an actor is told: its name, the goals it set out with, one it has now.
	YouAre       = "# You are %s"
	Goals        = "The goals you set out with:"
	InTheLongRun = "- in the long run: "
	// SumUp asks an actor to sum up what only it has read.
	SumUp = "Sum up for yourself"

	// Done and Outside are the headings of what the narrator is told of a turn, and Turn begins that of the question.
	Done    = "## Done in turn %d"
	Outside = "## From outside, in turn %d"
	Turn    = "# Turn %d of %d"

	// Severity begins how bad the issues of a check are.
	Severity = "An issue is of %s severity"
)

var (
	isMe      = regexp.MustCompile(line(YouAre))
	isTurn    = regexp.MustCompile(line(Turn))
	isState   = regexp.MustCompile(line(After))
	isDecided = regexp.MustCompile(line(Decided))
	isSevere  = regexp.MustCompile(line(Severity))
	isLong    = regexp.MustCompile(`(?m)^> ` + InTheLongRun + `(.+)$`)
	isOutside = regexp.MustCompile(`(?s)` + strings.ReplaceAll(Outside, "%d", `\d+`) + `\n(.*?)\n\n`)
	isEvent   = regexp.MustCompile(`(?m)^- [^:\n]+: (.+)$`)
	isDone    = regexp.MustCompile(`(?m)^> (.+)$`)
	isChange  = regexp.MustCompile(`(?m)^> - (.+)$`)
	isName    = regexp.MustCompile(`(?m)^# (.+)$`)
	isShare   = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(?:percent|%)`)
	sentence  = regexp.MustCompile(`[^.!?\n]{20,180}[.!?]`)
)

// line returns an expression for lines that begin with a format. It captures what replaces a verb.
func line(format string) string {
	return `(?m)^` + strings.NewReplacer("%d", `(\d+)`, "%s", `(.+)`).Replace(regexp.QuoteMeta(format))
}

// before returns the text of a format before its first verb.
func before(format string) string {
	text, _, _ := strings.Cut(format, "%")
	return text
}
