package exit

import "regexp"

// ours matches the package names that errors carry as prefixes.
var ours = regexp.MustCompile(`(^|: |\n)(?:app|cli|compare|config|control|engine|growth|journal|merge|price|sqlite|summary|trust|view): `)

// again matches a system error that repeats our own text.
var again = regexp.MustCompile(`(?m)(no such run file.*|exists already.*): file (?:does not exist|already exists)$`)

// Plain returns the text of an error without package names and repetitions.
func Plain(text string) string {
	return again.ReplaceAllString(ours.ReplaceAllString(text, "$1"), "$1")
}
