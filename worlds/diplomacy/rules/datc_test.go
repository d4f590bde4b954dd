package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// datc is a test case: a phase, its orders, and the expected results.
type datc struct {
	ID, Title, Phase string
	Units            map[string][]string
	Owners           map[string][]string
	Dislodged        []datcDislodged
	Orders           map[string][]string
	Prev             []datc
	Expect           struct {
		Results   map[string][]string
		After     map[string][]string
		Dislodged []datcDislodged
		Removed   []string
	}
}

type datcDislodged struct {
	Power, Unit, Attacker string
	Retreats              []string
}

func readDATC(t *testing.T) []datc {
	t.Helper()
	f, err := os.Open("testdata/datc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []datc
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c datc
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// TestDATC runs the Diplomacy Adjudicator Test Cases, and logs how many of each chapter pass.
func TestDATC(t *testing.T) {
	t.Parallel()
	r := New()
	green, all := map[string]int{}, map[string]int{}
	var chapters []string
	for _, c := range readDATC(t) {
		chapter := c.ID[:3]
		if all[chapter]++; all[chapter] == 1 {
			chapters = append(chapters, chapter)
		}
		if t.Run(c.ID, func(t *testing.T) {
			for _, prev := range c.Prev {
				playDATC(t, r, prev)
			}
			playDATC(t, r, c)
		}) {
			green[chapter]++
		}
	}
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "chapter\tcases\tgreen")
	cases, passed := 0, 0
	for _, c := range chapters {
		fmt.Fprintf(w, "%s\t%d\t%d\n", c, all[c], green[c])
		cases, passed = cases+all[c], passed+green[c]
	}
	fmt.Fprintf(w, "all\t%d\t%d\n", cases, passed)
	w.Flush()
	t.Logf("DATC v3.0\n%s", &table)
	if cases != 165 { // 164 cases, of which 6.J.9 has two positions
		t.Errorf("the file has %d cases, want 165", cases)
	}
}

func playDATC(t *testing.T, r *Rules, c datc) {
	t.Helper()
	p := positionOf(t, r, c)
	var orders Orders
	keys := map[Power][]string{}
	seen := map[string]int{}
	for _, w := range Powers() {
		for _, text := range c.Orders[w.Name()] {
			o, err := Parse(r.Board, text)
			if err != nil {
				t.Fatal(err)
			}
			orders[w] = append(orders[w], o)
			if seen[text]++; seen[text] > 1 {
				text = fmt.Sprintf("%s (%d)", text, seen[text])
			}
			keys[w] = append(keys[w], text)
		}
	}
	out := r.Adjudicate(&p, &orders)
	judged := 0
	for w, list := range keys {
		judged += len(list)
		for i, key := range list {
			res := out.Results[w][i]
			if got, want := res.Codes(), c.Expect.Results[key]; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v (%v)", key, got, want, res.Err)
			}
		}
	}
	if judged != len(c.Expect.Results) {
		t.Errorf("%d orders have a result, want %d", judged, len(c.Expect.Results))
	}
	for _, w := range Powers() {
		if got, want := r.UnitTexts(&out.After, w), c.Expect.After[w.Name()]; !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", w.Name(), got, want)
		}
	}
	compareDislodged(t, r, &out.After, c.Expect.Dislodged)
	if c.Expect.Removed != nil {
		var removed []string
		for _, u := range out.Removed {
			removed = append(removed, r.Board.UnitText(u))
		}
		if !slices.Equal(removed, c.Expect.Removed) {
			t.Errorf("removed %v, want %v", removed, c.Expect.Removed)
		}
	}
}

func positionOf(t *testing.T, r *Rules, c datc) Position {
	t.Helper()
	p := Position{Phase: First()}
	switch c.Phase {
	case "retreat":
		p.Phase.Step = Retreats
	case "build":
		p.Phase = Phase{Year: 1901, Season: Winter, Step: Adjustments}
	}
	for _, w := range Powers() {
		for _, text := range c.Units[w.Name()] {
			if err := r.Put(&p, w, text); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range c.Owners[w.Name()] {
			if err := r.Own(&p, w, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range c.Dislodged {
		w, _ := ParsePower(d.Power)
		if err := r.Dislodge(&p, w, d.Unit, d.Attacker, d.Retreats); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func compareDislodged(t *testing.T, r *Rules, after *Position, want []datcDislodged) {
	t.Helper()
	var got []datcDislodged
	for i := range after.Dislodged {
		if d := &after.Dislodged[i]; d.Unit.Power != None {
			got = append(got, datcDislodged{d.Unit.Power.Name(), r.Board.UnitText(d.Unit), r.Board.Code(d.Attacker), r.RetreatTexts(d)})
		}
	}
	byUnit := func(a, b datcDislodged) int { return strings.Compare(a.Unit[2:], b.Unit[2:]) }
	want = slices.SortedFunc(slices.Values(want), byUnit)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("dislodged %v, want %v", got, want)
	}
}
