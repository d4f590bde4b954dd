package exit

import "regexp"

// ours finds the name of the package that noticed something.
var ours = regexp.MustCompile(`(^|: |\n)(?:app|cli|config|engine|journal|price|sqlite): `)

// again finds the system's words for what was just said in ours.
var again = regexp.MustCompile(`(?m)(no such run file.*|exists already.*): file (?:does not exist|already exists)$`)

// Plain is an error as its reader needs it: without the packages it came through, and
// without saying a thing twice.
func Plain(text string) string {
	return again.ReplaceAllString(ours.ReplaceAllString(text, "$1"), "$1")
}
