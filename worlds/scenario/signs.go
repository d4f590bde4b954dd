package scenario

import (
	"regexp"
	"strings"
)

// Texts of the prompts by which the stand-in recognizes its role and finds what it needs. The prompts are
// written with them. Those with verbs are formats of package fmt.
const (
	// takesPart, Measures and Checks begin what is read by those who take part, measure and check.
	takesPart     = "You take part in a simulation that is played in turns."
	measures      = "You measure. Read what is quoted"
	standinChecks = "You check simulations."

	// atStart is the heading of the first situation, and After the line before the one after a turn.
	atStart = "## The situation at the start"
	after   = "The situation after turn %d:"
	// standinDecided is the line before a decision that is measured: who decided, and in which turn.
	standinDecided = "What %s decided in turn %d:"

	// youAre, Goals and InTheLongRun begin what an actor is told: its name, the goals it set out with, one it has now.
	youAre       = "# You are %s"
	standinGoals = "The goals you set out with:"
	inTheLongRun = "- in the long run: "
	// sumUp asks an actor to sum up what only it has read.
	sumUp = "Sum up for yourself"

	// standinDone and Outside are the headings of what the narrator is told of a turn, and Turn begins that of the question.
	standinDone = "## Done in turn %d"
	outside     = "## From outside, in turn %d"
	standinTurn = "# Turn %d of %d"

	// standinSeverity begins how bad the issues of a check are.
	standinSeverity = "An issue is of %s severity"
)

var (
	isMe           = regexp.MustCompile(line(youAre))
	isTurn         = regexp.MustCompile(line(standinTurn))
	isState        = regexp.MustCompile(line(after))
	isDecided      = regexp.MustCompile(line(standinDecided))
	isSevere       = regexp.MustCompile(line(standinSeverity))
	isLong         = regexp.MustCompile(`(?m)^> ` + inTheLongRun + `(.+)$`)
	isOutside      = regexp.MustCompile(`(?s)` + strings.ReplaceAll(outside, "%d", `\d+`) + `\n(.*?)\n\n`)
	isEvent        = regexp.MustCompile(`(?m)^- [^:\n]+: (.+)$`)
	isDone         = regexp.MustCompile(`(?m)^> (.+)$`)
	isChange       = regexp.MustCompile(`(?m)^> - (.+)$`)
	isName         = regexp.MustCompile(`(?m)^# (.+)$`)
	standinIsShare = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(?:percent|%)`)
	sentence       = regexp.MustCompile(`[^.!?\n]{20,180}[.!?]`)
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
