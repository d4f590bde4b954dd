package diplomacy

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"parley/world"
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
		x.Add(ended(t, deal, playDiplomacy(t, deal, world.Lineup{"ITALY": {Bot: "random"}}, simulated, func(p *Params) { p.MaxYear, p.Rounds, p.Judge = 1903, 1, true })))
	}
	shown := map[string]world.Show{}
	for _, e := range x.Exhibits() {
		if e.Title == "" || shown[e.Name] != nil {
			t.Errorf("exhibit %q has no title, or is there twice", e.Name)
		}
		shown[e.Name] = e.Show
	}
	curves, _ := shown["diplomacy-centres"].(world.Curves)
	if len(curves.Curves) != 7 || len(curves.Curves[0].Points) != 4 || curves.Curves[0].Points[0].Sample.Episodes() != 3 {
		t.Errorf("%+v", curves)
	}
	powers, _ := shown["diplomacy-powers"].(world.HeatMap)
	if len(powers.Rows) != 2 || powers.Cells[0][2] != nil || powers.Cells[1][2].Episodes() != 3 || powers.Rows[1] != "hero" {
		t.Errorf("%+v", powers)
	}
	relations, _ := shown["diplomacy-relations"].(world.HeatMap)
	if len(relations.Rows) != 7 || relations.Cells[0][1].Episodes() != 3 || relations.Cells[4][0] != nil {
		t.Errorf("wrong relations (a bot has none): %+v", relations)
	}
	conduct, _ := shown["diplomacy-conduct"].(world.Grid)
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
		p := ended(t, deal, playDiplomacy(t, deal, world.Lineup{"ITALY": {Bot: "random"}}, simulated, func(p *Params) { p.MaxYear, p.Rounds = 1902, 1 }))
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
				want[k] = &world.Sample{Bounds: bounds(strings.Fields(k)[1], scoreGame)}
			}
			want[k].Add(p.Unit, list...)
		}
	}
	for _, e := range x.Exhibits() {
		grid, _ := e.Show.(world.Grid)
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
	p := playDiplomacy(t, 2, world.Lineup{}, marked(), func(p *Params) { p.MaxYear, p.Rounds, p.Messages = 1902, 1, 7 })
	list := showReplay(p.notes)
	if len(list) != 1 {
		t.Fatalf("%d exhibits", len(list))
	}
	replay, _ := list[0].Show.(world.Replay)
	g := Read(p.notes)
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
	game := playDiplomacy(t, 0, nil, simulated, func(p *Params) { p.MaxYear, p.Rounds, p.Judge = 1902, 1, true })
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
			power := slices.IndexFunc(table.Columns, func(c world.NoteColumn) bool { return c.Name == "power" || c.Name == "sender" })
			if (row[power] == "FRANCE") != (row[power+1] == "hero") {
				t.Fatalf("%s: %v", table.Name, row)
			}
		}
	}
}
