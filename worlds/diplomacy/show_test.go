package diplomacy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

func TestNothingToShow(t *testing.T) {
	t.Parallel()
	x := exhibitor()
	for _, data := range []string{`{"powers":7}`, `[]`, `{}`, `{"powers":{"MARS":{}}}`, `{`} {
		x.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}})
	}
	x.Add(world.Played{Outcome: world.Outcome{Failed: "x", Data: json.RawMessage(`{"powers":{"FRANCE":{}}}`)}})
	if list := x.Exhibits(); list != nil {
		t.Errorf("%+v", list)
	}
	if showReplay(nil) != nil {
		t.Error("a game without notes has a replay")
	}
}

// TestHalfARecord checks that an incomplete record is shown as far as possible.
func TestHalfARecord(t *testing.T) {
	t.Parallel()
	x := exhibitor()
	x.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(`{"powers":{"FRANCE":null,"ITALY":{"score":3}},"centres":[{"year":1901}],"relations":{"ITALY":{"MARS":1}},"moments":[{}]}`)}})
	if len(x.Exhibits()) < 5 {
		t.Errorf("%+v", x.Exhibits())
	}
	list := showReplay([]world.Note{
		{Kind: notePhase, Data: json.RawMessage(`{"state":{"name":"S1901M","units":{"FRANCE":["Q","A ???"]},"centers":{"FRANCE":["ZZZ"]}},"orders":{"FRANCE":[{"order":"dance"}]}}`)},
		{Kind: noteMessage, Seat: "FRANCE", Data: json.RawMessage(`{"phase":"S1901M","to":"ALL","text":"<script>"}`)},
	})
	show, _ := list[0].Show.(world.Replay)
	if len(show.Frames) != 1 || show.Frames[0].SVG != "" || show.Frames[0].Lines[0].Text != "<script>" {
		t.Errorf("%+v", show.Frames)
	}
}

// TestLinesOfAPhase checks that only messages have somebody they are addressed to.
func TestLinesOfAPhase(t *testing.T) {
	t.Parallel()
	got := frameLines(&Phase{
		Messages: []Message{{From: "ITALY", To: "ALL", Text: "Peace."}, {From: "ITALY", To: "FRANCE", Text: "Peace?"}},
		Diary:    []Entry{{Power: "ITALY", About: AboutTalks, Text: "Nobody answers."}},
		Orders:   map[string][]Order{"ITALY": {{Order: "A ROM H"}}},
		Promises: []Promise{{From: "ITALY", To: "FRANCE", Quote: "Peace?", Verdict: recordKept}},
	})
	want := []world.FrameLine{
		{Who: "ITALY", To: "all", Text: "Peace."}, {Who: "ITALY", To: "FRANCE", Text: "Peace?"}, {Who: "ITALY", Text: "(diary, talks) Nobody answers."},
		{Who: "ITALY", Text: "(orders) A ROM H"}, {Who: "ITALY", Text: "(promise to FRANCE, kept) Peace?"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if text := endText(&End{Reason: recordDraw, Winners: []string{"ITALY", "FRANCE"}}); text != "The game ended in a draw between ITALY, FRANCE." {
		t.Error(text)
	}
}

// TestMomentsThatMatter checks that the moments with the most weight are kept.
func TestMomentsThatMatter(t *testing.T) {
	t.Parallel()
	g := &report{}
	for i := range 100 {
		g.moments = append(g.moments, showMoment{i, Moment{Weight: i % 10, Text: strings.Repeat("x", i)}})
	}
	g.trim()
	if len(g.moments) != maxShowMoments || g.moments[0].Weight != 9 || g.moments[19].Weight != 8 || g.moments[0].episode != 9 {
		t.Errorf("%+v", g.moments)
	}
}

func TestScene(t *testing.T) {
	t.Parallel()
	var p Phase
	err := json.Unmarshal([]byte(`{"state":{"name":"S1902R","units":{"FRANCE":["A PAR","*A BUR"],"GERMANY":["F STP/SC"]},"centers":{"FRANCE":["PAR"]}},
		"orders":{"FRANCE":[{"order":"A BUR R GAS","results":["success"]}],"GERMANY":[{"order":"WAIVE","results":["success"]},{"order":"F STP/SC S F BOT - LVN","results":["void"]}]}}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	b := rules.NewBoard()
	s, err := showScene(b, &p)
	paris, _ := b.Find("PAR")
	if err != nil || len(s.Units) != 3 || !s.Units[1].Dislodged || s.Owners[paris] != rules.France || len(s.Orders) != 2 {
		t.Fatalf("%+v %v", s, err)
	}
	if o := s.Orders[0]; o.Text(b) != "A BUR R GAS" || !o.Dislodged || o.Power != rules.France {
		t.Errorf("%+v", o)
	}
	if o := s.Orders[1]; o.Text(b) != "F STP/SC S F BOT - LVN" || o.Power != rules.Germany {
		t.Errorf("%+v", o)
	}
}

// TestBetrayals counts betrayals by agent and agent, zeros included.
func TestBetrayals(t *testing.T) {
	t.Parallel()
	x := exhibitor()
	lineup := map[string]string{"FRANCE": "a", "ITALY": "b", "TURKEY": "b"}
	// More betrayals than a summary has moments, which do not count here.
	for i, victims := range []string{`"ITALY":100,"TURKEY":20,"NOBODY":5`, ``} {
		x.Add(world.Played{Episode: i, Spec: world.Spec{Lineup: lineup}, Outcome: world.Outcome{Data: json.RawMessage(`{
			"powers":{"FRANCE":{"victims":{` + victims + `}},"ITALY":{},"TURKEY":{},"RUSSIA":null},"relations":{"ITALY":{"FRANCE":1}},
			"moments":[{"kind":"betrayal","power":"FRANCE","other":"ITALY"}]}`)}})
	}
	for _, e := range x.Exhibits() {
		if m, ok := e.Show.(world.HeatMap); ok && e.Name == "diplomacy-betrayals" {
			if got := [4]int{m.Cells[0][1].Episodes(), m.Cells[1][0].Episodes(), m.Cells[1][1].Episodes(), int(m.Cells[0][1].Estimate(0.95).Value)}; m.Cells[0][0] != nil || got != [4]int{2, 2, 2, 60} {
				t.Errorf("%v: %+v", got, m)
			}
			return
		}
	}
	t.Error("there is no table of betrayals")
}
