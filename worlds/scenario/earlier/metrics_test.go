package earlier

import (
	"strings"
	"testing"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		why    string
		broken bool
	}{
		`toll of (\d+)`:         {"", false},
		`(`:                     {`"(" is not a regular expression: missing closing )`, true},
		`[a`:                    {"missing closing ]", true},
		`a)`:                    {"unexpected )", true},
		`*a`:                    {"missing argument to repetition operator", true},
		`(?<=about )(\d+) cros`: {"looking ahead or behind is not possible", false},
		`(?!no)yes`:             {"looking ahead or behind is not possible", false},
		`(a)\1`:                 {`\1 is not possible`, false},
		`a{2000}`:               {"{2000} is not possible", false},
	} {
		if why, broken := patternFault(text); !strings.Contains(why, want.why) || (why == "") != (want.why == "") || broken != want.broken {
			t.Errorf("%s: %s, %v", text, why, broken)
		}
	}
}
