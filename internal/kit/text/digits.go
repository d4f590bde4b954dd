// Part digits writes numbers for people.
//
// It is for terminals and pages alike. Formats that only one of the two needs are in the package that writes there.

package text

import (
	"fmt"
	"strconv"
	"strings"
)

// GroupDigits formats 1234567 as 1,234,567.
func GroupDigits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Ranges formats numbers in ascending order as "1, 2, 5 to 9". It writes at most limit ranges, and how many numbers are left out; 0: all.
func Ranges(all []int, limit int) string {
	var parts []string
	for i := 0; i < len(all); {
		if limit > 0 && len(parts) == limit {
			parts = append(parts, fmt.Sprintf("and %s more", GroupDigits(len(all)-i)))
			break
		}
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if j > i+1 {
			parts = append(parts, fmt.Sprintf("%d to %d", all[i], all[j]))
			i = j + 1
			continue
		}
		parts = append(parts, strconv.Itoa(all[i]))
		i++
	}
	return strings.Join(parts, ", ")
}
