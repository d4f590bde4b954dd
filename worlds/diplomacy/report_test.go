package diplomacy

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/worlds/diplomacy/rules"
)

// ended returns a game as a report gets it.
func ended(t *testing.T, episode int, p *played) world.Played {
	t.Helper()
	data, err := json.Marshal(p.outcome.Data)
	if err != nil {
		t.Fatal(err)
	}
	lineup := map[string]string{}
	for _, seat := range rules.PowerNames() {
		lineup[seat] = "crowd"
	}
	lineup["FRANCE"] = "hero"
	return world.Played{Episode: episode, Spec: world.Spec{Lineup: lineup}, Outcome: world.Outcome{Scores: p.outcome.Scores, Data: json.RawMessage(data)}}
}

func TestExhibits(t *testing.T) {
	t.Parallel()
	x := newDefinition().Exhibitor()
	for deal := range 3 {
		x.Add(ended(t, deal, playGame(t, deal, world.Lineup{"ITALY": {Bot: "random"}}, simulated, func(p *Params) { p.MaxYear, p.Rounds, p.Judge = 1903, 1, true })))
	}
	shown := map[string]exhibit.Show{}
	for _, e := range x.Exhibits() {
		if e.Title == "" || shown[e.Name] != nil {
			t.Errorf("exhibit %q has no title, or is there twice", e.Name)
		}
		shown[e.Name] = e.Show
	}
	curves, _ := shown["diplomacy-centres"].(exhibit.Curves)
	if len(curves.Curves) != 7 || len(curves.Curves[0].Points) != 4 || curves.Curves[0].Points[0].Sample.Episodes() != 3 {
		t.Errorf("%+v", curves)
	}
	powers, _ := shown["diplomacy-powers"].(exhibit.HeatMap)
	if len(powers.Rows) != 2 || powers.Cells[0][2] != nil || powers.Cells[1][2].Episodes() != 3 || powers.Rows[1] != "hero" {
		t.Errorf("%+v", powers)
	}
	relations, _ := shown["diplomacy-relations"].(exhibit.HeatMap)
	if len(relations.Rows) != 7 || relations.Cells[0][1].Episodes() != 3 || relations.Cells[4][0] != nil {
		t.Errorf("wrong relations (a bot has none): %+v", relations)
	}
	conduct, _ := shown["diplomacy-conduct"].(exhibit.Grid)
	if len(conduct.Rows) != 2 || len(conduct.Rows[0]) != len(conduct.Columns) {
		t.Errorf("%+v", conduct)
	}
	for _, name := range []string{"diplomacy-orders", "diplomacy-mix", "diplomacy-ends", "diplomacy-moments", "diplomacy-refused"} {
		if shown[name] == nil {
			t.Errorf("exhibit %s is missing", name)
		}
	}
}

// TestConductIsScores checks that the table of agents agrees with the scores of any report: it leaves
// out powers that never gave a legal order, and counts an agent once in a game.
func TestConductIsScores(t *testing.T) {
	t.Parallel()
	x := newDefinition().Exhibitor()
	want := map[string]*world.Sample{}
	for deal := range 3 {
		p := ended(t, deal, playGame(t, deal, world.Lineup{"ITALY": {Bot: "random"}}, simulated, func(p *Params) { p.MaxYear, p.Rounds = 1902, 1 }))
		if deal > 0 { // Austria never gave a legal order
			p.Outcome.Scores = slices.DeleteFunc(slices.Clone(p.Outcome.Scores), func(s world.Score) bool { return s.Seat == "AUSTRIA" })
		}
		x.Add(p)
		values := map[string][]float64{}
		for _, s := range p.Outcome.Scores {
			if s.Seat != "" {
				k := p.Spec.Lineup[s.Seat] + " " + s.Name
				values[k] = append(values[k], s.Value)
			}
		}
		for k, list := range values {
			if want[k] == nil {
				want[k] = &world.Sample{Bounds: scoreBounds(strings.Fields(k)[1], scoreGame)}
			}
			want[k].Add(p.Unit, list...)
		}
	}
	for _, e := range x.Exhibits() {
		grid, _ := e.Show.(exhibit.Grid)
		if e.Name != "diplomacy-conduct" {
			continue
		}
		for _, row := range grid.Rows {
			for i, column := range grid.Columns[1:] {
				w, got := want[row[0].(string)+" "+column], row[i+1]
				sample, ok := got.(*world.Sample)
				if ok != (w != nil) || ok && sample.Estimate(0.95) != w.Estimate(0.95) {
					t.Errorf("%v's %s: %+v, want %+v", row[0], column, got, w)
				}
			}
		}
	}
}

// TestReplay checks that every phase has a frame with a well-formed picture and its messages.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := playGame(t, 2, world.Lineup{}, marked(), func(p *Params) { p.MaxYear, p.Rounds, p.Messages = 1902, 1, 7 })
	list := newReplay(world.Played{}, p.notes)
	if len(list) != 1 {
		t.Fatalf("%d exhibits", len(list))
	}
	replay, _ := list[0].Show.(exhibit.Replay)
	g := readGame(p.notes)
	if len(replay.Frames) != len(g.Phases)+1 || replay.Base == "" {
		t.Fatalf("%d frames of %d phases", len(replay.Frames), len(g.Phases))
	}
	for i, f := range replay.Frames {
		if err := wellFormed(f.SVG); err != nil || !strings.HasPrefix(f.SVG, "<svg") {
			t.Errorf("%s: %v: %.60q", f.Title, err, f.SVG)
		}
		if i < len(g.Phases) && strings.Contains(f.Title, "M") && (len(f.Lines) < len(g.Phases[i].Messages)+7 || len(g.Phases[i].Messages) == 0) {
			t.Errorf("%s: %d lines, %d messages", f.Title, len(f.Lines), len(g.Phases[i].Messages))
		}
	}
}

func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestTables checks that the tables of a game have its orders, press, relations and promises, with agents.
func TestTables(t *testing.T) {
	t.Parallel()
	game := playGame(t, 0, nil, simulated, func(p *Params) { p.MaxYear, p.Rounds, p.Judge = 1902, 1, true })
	p := ended(t, 0, game)
	for _, table := range newDefinition().Tables() {
		rows := table.Rows(p, game.notes)
		if len(rows) == 0 {
			t.Errorf("%s has no rows", table.Name)
		}
		for _, row := range rows {
			if len(row) != len(table.Columns) || row[0] == "" {
				t.Fatalf("%s: %v", table.Name, row)
			}
			power := slices.IndexFunc(table.Columns, func(c part.NoteColumn) bool { return c.Name == "power" || c.Name == "sender" })
			if (row[power] == "FRANCE") != (row[power+1] == "hero") {
				t.Fatalf("%s: %v", table.Name, row)
			}
		}
	}
}

func TestNothingToShow(t *testing.T) {
	t.Parallel()
	x := newReport()
	for _, data := range []string{`{"powers":7}`, `[]`, `{}`, `{"powers":{"MARS":{}}}`, `{`} {
		x.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}})
	}
	x.Add(world.Played{Outcome: world.Outcome{Failed: "x", Data: json.RawMessage(`{"powers":{"FRANCE":{}}}`)}})
	if list := x.Exhibits(); list != nil {
		t.Errorf("%+v", list)
	}
	if newReplay(world.Played{}, nil) != nil {
		t.Error("a game without notes has a replay")
	}
}

// TestHalfARecord checks that an incomplete record is shown as far as possible.
func TestHalfARecord(t *testing.T) {
	t.Parallel()
	x := newReport()
	x.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(`{"powers":{"FRANCE":null,"ITALY":{"score":3}},"centres":[{"year":1901}],"relations":{"ITALY":{"MARS":1}},"moments":[{}]}`)}})
	if len(x.Exhibits()) < 4 {
		t.Errorf("%+v", x.Exhibits())
	}
	list := newReplay(world.Played{}, []world.Note{
		{Kind: notePhase, Data: json.RawMessage(`{"state":{"name":"S1901M","units":{"FRANCE":["Q","A ???"]},"centers":{"FRANCE":["ZZZ"]}},"orders":{"FRANCE":[{"order":"dance"}]}}`)},
		{Kind: noteMessage, Seat: "FRANCE", Data: json.RawMessage(`{"phase":"S1901M","to":"ALL","text":"<script>"}`)},
	})
	show, _ := list[0].Show.(exhibit.Replay)
	if len(show.Frames) != 1 || show.Frames[0].SVG != "" || show.Frames[0].Lines[0].Text != "<script>" {
		t.Errorf("%+v", show.Frames)
	}
}

// TestLinesOfAPhase checks that only messages have somebody they are addressed to.
func TestLinesOfAPhase(t *testing.T) {
	t.Parallel()
	got := frameLines(&phaseRecord{
		Messages: []messageRecord{{From: "ITALY", To: "ALL", Text: "Peace."}, {From: "ITALY", To: "FRANCE", Text: "Peace?"}},
		Diary:    []diaryRecord{{Power: "ITALY", About: aboutTalks, Text: "Nobody answers."}},
		Orders:   map[string][]orderRecord{"ITALY": {{Order: "A ROM H"}}},
		Promises: []promiseRecord{{From: "ITALY", To: "FRANCE", Quote: "Peace?", Verdict: verdictKept}, {From: "ITALY", To: "ALL", Kind: promiseSupport, Unit: "A MUN", Place: "BUR", Quote: "War.", Verdict: verdictBroken}},
	}, []keyMoment{{Power: "ITALY", Other: "FRANCE", Text: "Italy struck France"}})
	want := []exhibit.FrameLine{
		{Who: "ITALY", To: "all", Text: "Peace."}, {Who: "ITALY", To: "FRANCE", Text: "Peace?"}, {Who: "ITALY", Text: "(diary, talks) Nobody answers."},
		{Who: "ITALY", Text: "(orders) A ROM H"}, {Who: "ITALY", Text: "(promise to FRANCE, kept) Peace?"},
		{Who: "ITALY", Text: "(promise to all, broken) War.", Mark: "breaks its promise to support A MUN to BUR"}, {Who: "ITALY", Text: "(betrayal) Italy struck France", Mark: "betrays FRANCE"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if text := endText(&endRecord{Reason: endDraw, Winners: []string{"ITALY", "FRANCE"}}); text != "The game ended in a draw between ITALY, FRANCE." {
		t.Error(text)
	}
}

// TestMomentsThatMatter checks that the moments with the most weight are kept.
func TestMomentsThatMatter(t *testing.T) {
	t.Parallel()
	var all []episodeMoment
	for i := range 100 {
		all = append(all, episodeMoment{episode: i, keyMoment: keyMoment{Weight: i % 10, Text: strings.Repeat("x", i)}})
	}
	if all = heaviest(all); len(all) != maxReportMoments || all[0].Weight != 9 || all[19].Weight != 8 || all[0].episode != 9 {
		t.Errorf("%+v", all)
	}
}

// shownBy returns what a report shows, by name.
func shownBy(x exhibit.Exhibitor) map[string]exhibit.Exhibit {
	all := map[string]exhibit.Exhibit{}
	for _, e := range x.Exhibits() {
		all[e.Name] = e
	}
	return all
}

// TestLies plays a game in which Italy strikes its ally, after it said that it would not: the report lists both with their words and a
// link to the game, and the replay marks them.
func TestLies(t *testing.T) {
	t.Parallel()
	game := playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		switch {
		case c.Label == aboutStart && c.Seat == "AUSTRIA":
			return reply(map[string]any{"goals": []string{}, "relations": []map[string]string{{"power": "ITALY", "relation": "ally"}}})
		case c.Label == "promises" && strings.Contains(c.Ask.Messages[0].Text(), "S1901M"):
			return reply(map[string]any{"promises": []promiseDraft{
				{From: "FRANCE", To: "GERMANY", Kind: "hold", Unit: "A PAR", Quote: "Paris stays."},
				{From: "ITALY", To: "AUSTRIA", Kind: "stay_out", Place: "TRI", Quote: "I keep out of Trieste."},
				{From: "ITALY", To: "ALL", Kind: "support", Unit: "A MUN", Place: "BUR"},
			}})
		case c.Label == "promises":
			return reply(map[string]any{"promises": []any{}})
		case c.Label == "orders":
			return reply(map[string]any{"reason": "", "orders": []string{"A ROM - APU", "A APU - VEN", "A VEN - TRI", "F TRI - ALB", "A TRI H", "F ALB H", "A PAR H"}})
		}
		return reply(map[string]any{"diary": "", "goals": []string{}, "relations": []any{}, "messages": []map[string]string{{"to": "ALL", "text": "Peace to all."}}})
	}, func(p *Params) { p.EndPhase, p.Rounds, p.Judge = "F1901M", 1, true })
	s := summary(t, game)
	if st := s.Powers["ITALY"]; st.Broken != 2 || st.BrokenTo["AUSTRIA"] != 1 || st.BrokenTo["ALL"] != 1 || s.Judged != 2 {
		t.Errorf("Italy broke %v in %d phases", st.BrokenTo, s.Judged)
	}
	played := ended(t, 7, game)
	played.Spec.Lineup["ITALY"] = "bold"
	x := newReport()
	x.Add(played)
	shown := shownBy(x)
	want := [][]any{
		{exhibit.Episodes{7}, exhibit.Moment{Episode: 7, Frame: "F1901M"}, "ITALY (bold)", "AUSTRIA (crowd)", "betrayal", "Italy struck Austria, who called it ally: it took TRI"},
		{exhibit.Episodes{7}, exhibit.Moment{Episode: 7, Frame: "S1901M"}, "ITALY (bold)", "AUSTRIA (crowd)", "broken promise", "Italy promised Austria to stay out of TRI: “I keep out of Trieste.”"},
		{exhibit.Episodes{7}, exhibit.Moment{Episode: 7, Frame: "S1901M"}, "ITALY (bold)", "all", "broken promise", "Italy promised all to support A MUN to BUR"},
	}
	if lies, _ := shown["diplomacy-lies"].Show.(exhibit.Grid); !reflect.DeepEqual(lies.Rows, want) {
		t.Errorf("got %v\nwant %v", lies.Rows, want)
	}
	if moments, _ := shown["diplomacy-moments"].Show.(exhibit.Grid); slices.ContainsFunc(moments.Rows, func(row []any) bool { return row[2] == momentBetrayal || row[2] == momentPromise }) {
		t.Errorf("key moments have lies too: %v", moments.Rows)
	}
	broken, _ := shown["diplomacy-broken"].Show.(exhibit.HeatMap)
	bold, crowd := slices.Index(broken.Rows, "bold"), slices.Index(broken.Rows, "crowd")
	if broken.Cells[bold][crowd].Estimate(0.95).Value != 1 || broken.Cells[crowd][bold].Estimate(0.95).Value != 0 {
		t.Errorf("%+v", broken)
	}
	var marks []string
	replay, _ := newReplay(played, game.notes)[0].Show.(exhibit.Replay)
	for _, f := range replay.Frames {
		for _, l := range f.Lines {
			if l.Mark != "" {
				marks = append(marks, f.Title+" "+l.Who+": "+l.Mark)
			}
		}
	}
	if want := []string{"S1901M ITALY: breaks its promise to stay out of TRI", "S1901M ITALY: breaks its promise to support A MUN to BUR", "F1901M ITALY: betrays AUSTRIA"}; !slices.Equal(marks, want) {
		t.Errorf("got %q\nwant %q", marks, want)
	}
}

// TestManyLies checks that neither broken promises nor betrayals crowd out the others, in the summary of a game and in a report,
// and that the report says how many there are.
func TestManyLies(t *testing.T) {
	t.Parallel()
	promise, betrayal := keyMoment{Kind: momentPromise, Weight: 6}, keyMoment{Kind: momentBetrayal, Weight: 8}
	tally := &tally{moments: slices.Concat(slices.Repeat([]keyMoment{betrayal}, 100), slices.Repeat([]keyMoment{promise}, 100), []keyMoment{{Kind: "solo", Weight: 10}})}
	kept := map[string]int{}
	for _, m := range tally.topMoments() {
		kept[m.Kind]++
	}
	if want := map[string]int{momentPromise: maxSummaryPromises, momentBetrayal: maxSummaryMoments - 1, "solo": 1}; !maps.Equal(kept, want) {
		t.Errorf("the summary keeps %v, want %v", kept, want)
	}
	for _, c := range []struct {
		promises, betrayals int
		want                string // rows of each
		caption             string
	}{
		{30, 40, "10 10", "These are the 20 gravest of 70: there are 30 broken promises and 40 betrayals."},
		{3, 40, "3 17", "These are the 20 gravest of 43: there are 3 broken promises and 40 betrayals."},
		{40, 0, "20 0", "These are the 20 gravest of 40: there are 40 broken promises and 0 betrayals."},
		{12, 8, "12 8", ""},
		{0, 40, "0 20", "Broken promises are not known: no agent in the seat judge looked for promises (params.judge). These are the 20 gravest of 40."},
	} {
		x := newReport()
		data, err := json.Marshal(gameSummary{
			Judged: min(1, c.promises), Powers: map[string]*powerStats{"FRANCE": {Broken: c.promises, Betrayed: c.betrayals}},
			Moments: slices.Concat(slices.Repeat([]keyMoment{promise}, c.promises), slices.Repeat([]keyMoment{betrayal}, c.betrayals)),
		})
		if err != nil {
			t.Fatal(err)
		}
		x.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}})
		e := shownBy(x)["diplomacy-lies"]
		rows := map[any]int{}
		for _, row := range e.Show.(exhibit.Grid).Rows {
			rows[row[4]]++
		}
		if got := fmt.Sprint(rows[momentPromise], " ", rows[momentBetrayal]); got != c.want || !strings.HasSuffix(e.Caption, c.caption) || c.caption == "" && strings.Contains(e.Caption, "gravest") {
			t.Errorf("%d and %d: %s rows, want %s: %s", c.promises, c.betrayals, got, c.want, e.Caption)
		}
	}
}

// TestHostileLies reads summaries that no game makes.
func TestHostileLies(t *testing.T) {
	t.Parallel()
	x := newReport()
	for _, data := range []string{
		`{"powers":{"FRANCE":null,"MARS":{"broken":1,"broken_to":{"VENUS":1}},"ITALY":{"broken":9223372036854775807,"betrayed":-9223372036854775808,"broken_to":{"FRANCE":-5,"MARS":9223372036854775807,"ALL":1}}},"judged":1,
			"moments":[{"kind":"broken promise","weight":9223372036854775807},{"kind":"betrayal","power":"MARS","other":"VENUS","weight":-9223372036854775808},{}]}`,
		`{"powers":{"ITALY":{}},"judged":-1,"relations":{"MARS":null},"moments":[null]}`,
	} {
		p := world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}}
		x.Add(p)
		newReplay(p, []world.Note{{Kind: notePhase, Data: json.RawMessage(`{"state":{"name":""}}`)}, {Kind: notePhase, Data: json.RawMessage(`{"state":{"name":"S1901M"}}`)}})
	}
	e := shownBy(x)["diplomacy-lies"]
	if lies, _ := e.Show.(exhibit.Grid); len(lies.Rows) != 2 || !strings.Contains(e.Caption, "1048577 broken promises and 0 betrayals") {
		t.Errorf("%s: %v", e.Caption, e.Show)
	}
}

func TestScene(t *testing.T) {
	t.Parallel()
	var p phaseRecord
	err := json.Unmarshal([]byte(`{"state":{"name":"S1902R","units":{"FRANCE":["A PAR","*A BUR"],"GERMANY":["F STP/SC"]},"centers":{"FRANCE":["PAR"]}},
		"orders":{"FRANCE":[{"order":"A BUR R GAS","results":["success"]}],"GERMANY":[{"order":"WAIVE","results":["success"]},{"order":"F STP/SC S F BOT - LVN","results":["void"]}]}}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	b := rules.NewBoard()
	s, err := phaseScene(b, &p)
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
	x := newReport()
	lineup := map[string]string{"FRANCE": "a", "ITALY": "b", "TURKEY": "b"}
	// More betrayals than a summary has moments, which do not count here.
	for i, victims := range []string{`"ITALY":100,"TURKEY":20,"NOBODY":5`, ``} {
		x.Add(world.Played{Episode: i, Spec: world.Spec{Lineup: lineup}, Outcome: world.Outcome{Data: json.RawMessage(`{
			"powers":{"FRANCE":{"victims":{` + victims + `}},"ITALY":{},"TURKEY":{},"RUSSIA":null},"relations":{"ITALY":{"FRANCE":1}},
			"moments":[{"kind":"betrayal","power":"FRANCE","other":"ITALY"}]}`)}})
	}
	for _, e := range x.Exhibits() {
		if m, ok := e.Show.(exhibit.HeatMap); ok && e.Name == "diplomacy-betrayals" {
			if got := [4]int{m.Cells[0][1].Episodes(), m.Cells[1][0].Episodes(), m.Cells[1][1].Episodes(), int(m.Cells[0][1].Estimate(0.95).Value)}; m.Cells[0][0] != nil || got != [4]int{2, 2, 2, 60} {
				t.Errorf("%v: %+v", got, m)
			}
			return
		}
	}
	t.Error("there is no table of betrayals")
}
