package llm_test

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
)

func TestMoneyText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		money llm.Money
		text  string
		json  string
	}{
		{0, "$0.00", "0"},
		{llm.Dollar, "$1.00", "1"},
		{12 * llm.Dollar / 10, "$1.20", "1.2"},
		{50, "$0.00", "0.00000005"},
		{1234, "$0.000001", "0.000001234"},
		{1_500_000, "$0.0015", "0.0015"},
		{999_999_999, "$1.00", "0.999999999"},
		{-llm.Dollar / 4, "-$0.25", "-0.25"},
		{1_000_000 * llm.Dollar, "$1000000.00", "1000000"},
		{10 * llm.Dollar, "$10.00", "10"},
		{math.MaxInt64, "$9223372036.854776", "9223372036.854775807"},
		{math.MinInt64, "-$9223372036.854776", "-9223372036.854775808"},
	}
	for _, tt := range tests {
		if got := tt.money.String(); got != tt.text {
			t.Errorf("%d is written %s, want %s", tt.money, got, tt.text)
		}
		if got, err := json.Marshal(tt.money); err != nil || string(got) != tt.json {
			t.Errorf("%d as JSON is %s, %v, want %s", tt.money, got, err, tt.json)
		}
	}
}

func TestMoneyFromJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want llm.Money
	}{
		{"1", llm.Dollar}, {"0.1", llm.Dollar / 10}, {"1e-9", 1}, {"2.5E-6", 2500}, {"1e-999999999", 0}, {"-0", 0},
		{"0.0000000014", 1}, {"0.0000000015", 2}, {"null", 7},
	}
	for _, tt := range tests {
		m := llm.Money(7)
		if err := json.Unmarshal([]byte(tt.in), &m); err != nil || m != tt.want {
			t.Errorf("%s is read as %d, %v, want %d", tt.in, m, err, tt.want)
		}
	}
	for _, in := range []string{`"1"`, `true`, `{}`, `1e11`, `1e999`, `9223372036.854775808`} {
		m := llm.Money(7)
		if err := json.Unmarshal([]byte(in), &m); err == nil || m != 7 {
			t.Errorf("%s is read as %d, %v, want an error", in, m, err)
		}
	}
	var m llm.Money
	for _, in := range []string{"NaN", "Inf", "", "0x1", "1/3", "1e-5000000"} { // handed over by something other than encoding/json
		if err := m.UnmarshalJSON([]byte(in)); err == nil && m != 0 {
			t.Errorf("%s is read as %d", in, m)
		}
	}
}

func TestMoneyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := llm.Money(rapid.Int64().Draw(t, "money"))
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Money
		if err := json.Unmarshal(b, &back); err != nil || back != m {
			t.Fatalf("%d became %s and then %d, %v", m, b, back, err)
		}
	})
}

func TestDollars(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   float64
		want llm.Money
	}{
		{1.25, 1_250_000_000}, {0.1 + 0.2, 300_000_000}, {-0.5, -llm.Dollar / 2}, {1e-9, 1}, {4e-10, 0},
		{math.NaN(), 0}, {math.Inf(1), math.MaxInt64}, {math.Inf(-1), math.MinInt64}, {1e300, math.MaxInt64}, {-1e300, math.MinInt64},
	}
	for _, tt := range tests {
		if got := llm.Dollars(tt.in); got != tt.want {
			t.Errorf("%v dollars are %d, want %d", tt.in, got, tt.want)
		}
	}
	if got := (3 * llm.Dollar / 2).Dollars(); got != 1.5 {
		t.Errorf("a dollar and a half is %v", got)
	}
}
