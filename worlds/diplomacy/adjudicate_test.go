package diplomacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world/program"
	"parley/worlds/diplomacy/rules"
)

// datcCase is a test case of the adjudicator, with the fields that the command shows.
type datcCase struct {
	ID        string              `json:"id"`
	Phase     string              `json:"phase"`
	Units     map[string][]string `json:"units"`
	Owners    map[string][]string `json:"owners,omitempty"`
	Centers   map[string][]string `json:"centers,omitempty"`
	Dislodged []dislodgedUnit     `json:"dislodged,omitempty"`
	Orders    map[string][]string `json:"orders"`
	Expect    *struct {
		Results   map[string][]string
		After     map[string][]string
		Dislodged []dislodgedUnit
	} `json:"expect,omitempty"`
}

// judge runs the command on lines and returns its output.
func judge(t *testing.T, in string, options bool, want error) string {
	t.Helper()
	var out strings.Builder
	p := &program.Program{Stdin: strings.NewReader(in), Stdout: &out, Stop: t.Context()}
	if err := (&adjudicateVerb{Options: options}).Run(t.Context(), p); !errors.Is(err, want) {
		t.Fatalf("%v, want %v: %s", err, want, out.String())
	}
	return out.String()
}

// TestAdjudicateDATC gives all test cases to the command, in one stream.
func TestAdjudicateDATC(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("rules/testdata/datc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var cases []datcCase
	var input bytes.Buffer
	for line := range bytes.Lines(file) {
		var c datcCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
		if c.Phase == "build" {
			c.Phase = "adjustment"
		}
		c.Centers, c.Owners, c.Expect = c.Owners, nil, nil
		if err := json.NewEncoder(&input).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(judge(t, input.String(), false, nil)), "\n")
	if len(lines) != len(cases) || len(cases) == 0 {
		t.Fatalf("%d answers for %d cases", len(lines), len(cases))
	}
	for i, c := range cases {
		var got judgedLine
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]dislodgedUnit{got.After.Dislodged, c.Expect.Dislodged} {
			slices.SortFunc(list, func(a, b dislodgedUnit) int { return strings.Compare(a.Unit[2:], b.Unit[2:]) })
		}
		if string(got.ID) != `"`+c.ID+`"` || !reflect.DeepEqual(got.Results, c.Expect.Results) ||
			!reflect.DeepEqual(got.After.Units, c.Expect.After) || !reflect.DeepEqual(got.After.Dislodged, c.Expect.Dislodged) {
			t.Errorf("%s: %s", c.ID, lines[i])
		}
	}
}

func TestAdjudicateLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{
			"start", `{"orders":{"FRANCE":["a paris to burgundy"]}}`,
			`"FRANCE":["A BUR","A MAR","F BRE"]`,
		},
		{
			"fall", `{"season":"fall","units":{"France":["A BEL"]},"centers":{"France":["PAR"]}}`,
			`{"results":{},"after":{"units":{"France":["A BEL"]},"dislodged":[],"centers":{"France":["BEL","PAR"]}}}`,
		},
		{
			"spring", `{"units":{"France":["A BEL"]},"centers":{"France":["PAR"]}}`,
			`"centers":{"France":["PAR"]}`,
		},
		{
			"fall with a retreat", `{"season":"fall","units":{"Italy":["A VEN","A TYR"],"Austria":["F TRI"]},"orders":{"Italy":["A VEN - TRI","A TYR S A VEN - TRI"]}}`,
			`"dislodged":[{"power":"Austria","unit":"F TRI","attacker":"VEN","retreats":["ADR","ALB"]}],"centers":{}}`,
		},
		{
			"fall after a retreat", `{"phase":"retreat","season":"fall","units":{"Italy":["A TRI"]},"dislodged":[{"power":"Austria","unit":"F TRI","attacker":"VEN"}],"orders":{"Austria":["F TRI - ALB"]}}`,
			`{"results":{"F TRI - ALB":["success"]},"after":{"units":{"Austria":["F ALB"],"Italy":["A TRI"]},"dislodged":[],"centers":{"Italy":["TRI"]}}}`,
		},
		{
			"not read", `{"units":{"France":["A PAR"]},"orders":{"France":["A PAR dances","A PAR dances"]}}`,
			`"results":{"A PAR dances":["illegal"],"A PAR dances (2)":["illegal"]}`,
		},
		{"id", `{"id":[1,"x"],"units":{}}`, `{"id":[1,"x"],"results":{},"after":{"units":{},"dislodged":[],"centers":{}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if out := judge(t, c.in+"\n", false, nil); !strings.Contains(out, c.want) {
				t.Errorf("%s\nwant %s", out, c.want)
			}
		})
	}
}

func TestAdjudicateOptions(t *testing.T) {
	t.Parallel()
	in := `{"units":{"France":["A PIC","F ENG"]}}
{"id":7,"phase":"retreat","units":{"Italy":["A TRI"]},"dislodged":[{"power":"Austria","unit":"F TRI","attacker":"VEN","retreats":["ALB"]}]}
{"phase":"adjustment","units":{"Russia":["A MOS"],"France":["A PAR","A BUR"]},"centers":{"Russia":["MOS","STP"],"France":["PAR"]}}
`
	want, err := os.ReadFile("testdata/options.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got := judge(t, in, true, nil); got != string(want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestAdjudicateRefuses checks that the answer to a bad line is an error, and that the next line is
// answered as usual.
func TestAdjudicateRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"unit":{}}`:                                      `unknown field \"unit\"; did you mean units? want one of centers, dislodged, id, orders, phase, season, units, year`,
		`nonsense`:                                         `a position is an object`,
		`{"units":`:                                        `not valid JSON`,
		`{"units":["A PAR"]}`:                              `units: found array`,
		"{\"units\":{\"\xff\":[]}}":                        `not valid UTF-8`,
		`{"phase":"lunch"}`:                                `unknown phase \"lunch\"; want one of movement, retreat, adjustment`,
		`{"season":"monsoon"}`:                             `unknown season \"monsoon\"; want one of spring, fall, winter`,
		`{"season":"winter"}`:                              `adjustments only`,
		`{"year":-3}`:                                      `year: -3`,
		`{"units":{"Spain":[]}}`:                           `units: unknown power \"Spain\"; want one of Austria`,
		`{"units":{"France":[],"FRANCE":[]}}`:              `units: France is listed twice`,
		`{"units":{"France":["A XYZ"]}}`:                   `units: France: order: \"A XYZ\"`,
		`{"units":{"France":["A NTH"]}}`:                   `no such unit can stand in North Sea`,
		`{"units":{"France":["F MUN"]}}`:                   `no such unit can stand in Munich`,
		`{"units":{"Russia":["F STP"]}}`:                   `say which coast: STP/NC or STP/SC`,
		`{"units":{"Russia":["F STP/NC","A STP"]}}`:        `is there already`,
		`{"centers":{"France":["BUR"]}}`:                   `Burgundy has no supply centre`,
		`{"centers":{"France":["PAR"],"Italy":["PAR"]}}`:   `France owns it already`,
		`{"orders":{"Mars":[]}}`:                           `orders: unknown power \"Mars\"`,
		`{"dislodged":[{"power":"Italy","unit":"A ROM"}]}`: `units retreat in phase`,
		`{"phase":"retreat","dislodged":[{"power":"x","unit":"A ROM"}]}`:                                             `dislodged: 0: unknown power \"x\"`,
		`{"phase":"retreat","dislodged":[{"power":"Italy","unit":"A ROM","retreats":["MOS"]}]}`:                      `A ROM cannot go there; free are: APU, NAP, TUS, VEN`,
		`{"phase":"retreat","dislodged":[{"power":"Italy","unit":"A ROM","attacker":"?"}]}`:                          `order: \"?\"`,
		`{"phase":"retreat","dislodged":[{"power":"Italy","unit":"A ROM"},{"power":"Turkey","unit":"A ROM"}]}`:       `dislodged there already`,
		`{"id":5,"units":{"France":["A PAR","A PAR"]}}`:                                                              `{"id":5,"line":1,"error":"units: France:`,
		`{"units":{"France":["` + strings.Repeat("x", maxPosition) + `"]}}`:                                          `too long`,
		`{"phase":"retreat","units":{"Italy":["A VEN"]},"dislodged":[{"power":"Italy","unit":"A","retreats":[""]}]}`: `a unit is A or F and a place`,
	} {
		first, rest, _ := strings.Cut(judge(t, in+"\n\n{}\n", false, program.ErrReported), "\n")
		if !strings.Contains(first, want) || !strings.Contains(first, `"line":1,`) {
			t.Errorf("%.60s: %s\nwant %s", in, first, want)
		}
		if !strings.HasPrefix(rest, `{"results":{},"after":{"units":{"Austria"`) || strings.Count(rest, "\n") != 1 {
			t.Errorf("%.60s: the next answer is %s", in, rest)
		}
	}
}

// TestAdjudicatePage runs the examples of docs/how-to/adjudicate.md and looks for the answers that it shows.
func TestAdjudicatePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/adjudicate.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(page), "$ echo '")[1:]
	if len(examples) < 3 {
		t.Errorf("%d examples found", len(examples))
	}
	for _, example := range examples {
		in, rest, _ := strings.Cut(example, "' | parley adjudicate")
		options, rest, _ := strings.Cut(rest, "\n")
		answer, _, _ := strings.Cut(rest, "\n")
		var want error
		if strings.Contains(answer, `"error":`) {
			want = program.ErrReported
		}
		if got := judge(t, in, options == " --options", want); got != answer+"\n" {
			t.Errorf("%s\n%swant\n%s", in, got, answer)
		}
	}
}

// FuzzAdjudicate checks that the answer to any line is one line of JSON, without a panic.
func FuzzAdjudicate(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"id":1,"orders":{"FRANCE":["A PAR - BUR","F BRE S A PAR - BUR"]}}`, `null`, `[]`, `{"units":null}`,
		`{"phase":"adjustment","units":{"Russia":["A MOS"]},"centers":{"Russia":["MOS","STP"]},"orders":{"Russia":["F STP B","WAIVE","A PAR D"]}}`,
		`{"phase":"retreat","units":{"Italy":["A TRI"]},"dislodged":[{"power":"Austria","unit":"F TRI","attacker":"VEN"}],"orders":{"Austria":["F TRI R ALB"]}}`,
		`{"units":{"England":["A LON","F NTH"]},"orders":{"England":["A LON - BEL VIA","F NTH C A LON - BEL","waive"]}}`,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	r := rules.New()
	f.Fuzz(func(t *testing.T, line []byte, options bool) {
		if len(bytes.TrimSpace(line)) == 0 {
			return // an empty line has no answer
		}
		a := adjudicator{rules: r, options: options}
		answer, err := a.answer(line)
		if err != nil {
			answer = refusedLine{ID: a.id, Line: 1, Error: err.Error()}
		}
		b, err := json.Marshal(answer)
		if err != nil || !json.Valid(b) || bytes.ContainsRune(b, '\n') {
			t.Errorf("%s: %v", b, err)
		}
	})
}
