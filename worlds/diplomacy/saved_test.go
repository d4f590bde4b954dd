package diplomacy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// greedyGame returns the record of a game of greedy bots, with messages and diary entries added.
func greedyGame(t *testing.T) gameRecord {
	t.Helper()
	k := Kind()
	params, err := k.Read(json.RawMessage(`{"max_year":1905}`))
	if err != nil {
		t.Fatal(err)
	}
	lineup := world.Lineup{}
	for _, seat := range rules.PowerNames() {
		lineup[seat] = world.Agent{Bot: "greedy"}
	}
	w, err := k.World(params, lineup)
	if err != nil {
		t.Fatal(err)
	}
	g := readGame(botNotes(t, world.Begin(w, world.Deal{Seed: 5}), k.Bots()["greedy"]))
	g.Phases[0].Messages = []messageRecord{
		{Phase: "S1901M", Round: 1, From: "FRANCE", To: "ALL", Text: "Peace."}, {Phase: "S1901M", Round: 1, From: "ITALY", To: "FRANCE", Text: "Peace."},
	}
	entries := []diaryRecord{
		{Phase: "S1901M", Power: "FRANCE", About: aboutStart, Goals: []string{"Win."}, Relations: map[string]string{"ITALY": "ally"}},
		{Phase: "S1901M", Power: "FRANCE", About: aboutTalks, Text: "Italy is a friend."},
		{Phase: "S1901M", Power: "FRANCE", About: aboutResults, Text: "Was it?"},
	}
	g.Phases[0].Diary = entries
	for i := range g.Phases {
		switch g.Phases[i].State.Name {
		case "S1903M":
			g.Phases[i].Diary = []diaryRecord{{Phase: "S1903M", Power: "FRANCE", About: aboutYears, Text: "All was well."}}
		case "F1902M":
			g.Phases[i].Diary = []diaryRecord{{Phase: "F1902M", Power: "FRANCE", About: aboutTalks, Text: "Hm.", Relations: map[string]string{"ITALY": "enemy"}}}
		}
	}
	return g
}

// botNotes plays a world of bots and returns its notes.
func botNotes(t *testing.T, s *world.Strand, bot world.Bot) []world.Note {
	t.Helper()
	var all []world.Note
	var replies []world.Reply
	for {
		turn := s.Next(replies)
		replies = nil
		all = append(all, turn.Notes...)
		switch {
		case turn.Panic != "":
			t.Fatal(turn.Panic)
		case turn.Done:
			return all
		}
		for _, f := range turn.Forks {
			all = append(all, botNotes(t, f, bot)...)
		}
		for _, c := range turn.Calls {
			replies = append(replies, bot(c))
		}
	}
}

type parsedGame struct {
	ID, Map string
	Phases  []struct {
		Name     string
		State    map[string]any
		Orders   map[string][]string
		Results  map[string][]string
		Messages []struct {
			Sender, Recipient, Phase, Message string
			Time                              int64 `json:"time_sent"`
		}
		Agents   map[string]parsedAgent                                 `json:"state_agents"`
		Outcomes map[string]map[string][]struct{ Order, Result string } `json:"order_results"`
	}
	Final map[string]struct {
		Goals         []string
		Relationships map[string]string
	} `json:"final_agent_states"`
}

type parsedAgent struct {
	Model         string `json:"model_id"`
	Goals         []string
	Relationships map[string]string
	Full          []string `json:"full_private_diary"`
	Diary         []string `json:"private_diary"`
}

func parseGame(t *testing.T, b []byte, err error) parsedGame {
	t.Helper()
	var f parsedGame
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGame checks that a saved game has all that the Python package reads, and that the position of
// each phase is the recorded one.
func TestGame(t *testing.T) {
	t.Parallel()
	g := greedyGame(t)
	b, err := writeSavedGame(g, savedInfo{ID: "game-1"})
	f := parseGame(t, b, err)
	if f.ID != "game-1" || f.Map != "standard" || len(f.Phases) != len(g.Phases)+1 || f.Phases[len(f.Phases)-1].Name != "COMPLETED" {
		t.Fatalf("%s %s, %d phases of %d", f.ID, f.Map, len(f.Phases), len(g.Phases))
	}
	for _, key := range []string{"timestamp", "zobrist_hash", "note", "name", "units", "retreats", "centers", "homes", "influence", "civil_disorder", "builds", "phase", "game_id", "map", "rules"} {
		if _, ok := f.Phases[0].State[key]; !ok {
			t.Errorf("the state has no key %s", key)
		}
	}
	if got := f.Phases[0].State["phase"]; got != "SPRING 1901 MOVEMENT" {
		t.Errorf("phase %v", got)
	}
	r := rules.New()
	for i, p := range g.Phases {
		again, err := readPosition(b, p.State.Name)
		if err != nil {
			t.Fatal(err)
		}
		pos, err := r.FromState(again)
		want, err2 := r.FromState(p.State)
		if err != nil || err2 != nil || pos != want {
			t.Errorf("%s: the position is not the recorded one (%v, %v)", p.State.Name, err, err2)
		}
		n := 0
		for power, orders := range f.Phases[i].Orders {
			n += len(orders)
			if len(orders) != len(p.Orders[power]) {
				t.Errorf("%s: %d orders of %s", p.State.Name, len(orders), power)
			}
		}
		if n > 0 && len(f.Phases[i].Results) == 0 || len(f.Phases[i].Orders) != 7 {
			t.Errorf("%s: %d orders, %d results", p.State.Name, n, len(f.Phases[i].Results))
		}
		for unit, codes := range f.Phases[i].Results {
			if slices.Contains(codes, "success") || slices.Contains(codes, "noconvoy") {
				t.Errorf("%s: %s: %v", p.State.Name, unit, codes)
			}
		}
	}
	if m := f.Phases[0].Messages; len(m) != 2 || m[0].Recipient != "GLOBAL" || m[1].Recipient != "FRANCE" || m[0].Time >= m[1].Time {
		t.Errorf("%+v", m)
	}
	if again, err := writeSavedGame(g, savedInfo{ID: "game-1"}); err != nil || string(again) != string(b) {
		t.Errorf("two files of the same record differ (%v)", err)
	}
}

func TestLMvsGame(t *testing.T) {
	t.Parallel()
	g := greedyGame(t)
	b, err := writeLMvsGame(g, savedInfo{ID: "game-1", Models: map[string]string{"FRANCE": "sim/large"}})
	f := parseGame(t, b, err)
	france := func(phase string) parsedAgent {
		i := slices.IndexFunc(g.Phases, func(p phaseRecord) bool { return p.State.Name == phase })
		if i < 0 {
			t.Fatalf("no phase %s", phase)
		}
		return f.Phases[i].Agents["FRANCE"]
	}
	first, late := france("S1901M"), france("S1903M")
	if first.Model != "sim/large" || first.Relationships["ITALY"] != "Ally" || first.Relationships["TURKEY"] != "Neutral" || !reflect.DeepEqual(first.Goals, []string{"Win."}) {
		t.Errorf("%+v", first)
	}
	if strings.Join(late.Full, "|") != "[S1901M] Italy is a friend.|[S1901M] Was it?|[F1902M] Hm." || strings.Join(late.Diary, "|") != "[CONSOLIDATED HISTORY] All was well.|[F1902M] Hm." {
		t.Errorf("%q\n%q", late.Full, late.Diary)
	}
	if f.Final["FRANCE"].Relationships["ITALY"] != "Enemy" || len(f.Final) != 7 {
		t.Errorf("%+v", f.Final)
	}
	moves := f.Phases[0].Outcomes["FRANCE"]["move"]
	if len(moves) == 0 || !strings.Contains(moves[0].Order, " - ") || moves[0].Result == "" {
		t.Errorf("%+v", f.Phases[0].Outcomes["FRANCE"])
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`7`:                                      "not the JSON",
		`{}`:                                     "neither a state",
		`{"phases":[{"state":{"name":"DONE"}}]}`: "has no phase that could be played",
		`{"name":"S1901M","units":{}}`:           "there is no phase F1901M",
	} {
		if _, err := readPosition([]byte(data), "F1901M"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}

func FuzzPosition(f *testing.F) {
	f.Add([]byte(`{"name":"S1901M","units":{"FRANCE":["A PAR"]}}`), "")
	r := rules.New()
	f.Fuzz(func(_ *testing.T, data []byte, phase string) {
		if s, err := readPosition(data, phase); err == nil {
			_, _ = r.FromState(s)
		}
	})
}

// TestFiles checks that every phase has a picture, that saved games are JSON, and that a game without
// notes has no files.
func TestFiles(t *testing.T) {
	t.Parallel()
	d := newDefinition()
	if got := d.Files(nil, world.Played{}, nil); got != nil {
		t.Errorf("a game without notes has the files %v", got)
	}
	notes := playGame(t, 1, allBots("greedy"), nil, func(p *Params) { p.Rounds, p.MaxYear = 0, 1901 }).notes
	files := d.Files(nil, world.Played{Episode: 3, Spec: world.Spec{Lineup: map[string]string{"FRANCE": "hero"}}}, notes)
	boards := 0
	for name, text := range files {
		switch {
		case strings.HasSuffix(name, ".json"):
			if !json.Valid([]byte(text)) {
				t.Errorf("%s is not JSON", name)
			}
		case strings.HasSuffix(name, ".svg"):
			boards++
			if err := wellFormed(text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		default:
			t.Errorf("unexpected file %s", name)
		}
	}
	if boards < 2 || files["game.json"] == "" || !strings.Contains(files["lmvsgame.json"], "hero") {
		t.Errorf("%d boards, %d files", boards, len(files))
	}
}
