// Package digits writes numbers for people.
//
// It is for terminals and pages alike. Formats that only one of the two needs are in the package that writes there.
package digits

import "strconv"

// Grouped formats 1234567 as 1,234,567.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
