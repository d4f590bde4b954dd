package report

import "testing"

func TestDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 3: "3", 1.23456: "1.235", -0.00012345: "-0.0001234", 999.96: "1,000", 1172.6: "1,173", -12345.6: "-12,346", 1397: "1,397", 2.5e9: "2.5e+09"} {
		if got := digits(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
