package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
)

// environment is the speaker for the environment.
const environment = "environment"

// tellStory describes an episode step by step, for people. It skips what it cannot read, because a run file may
// come from anywhere. name is that of the exhibit.
func tellStory(name string, p world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	s := &teller{paid: map[string]float64{}}
	for _, t := range entries {
		s.Turn = t.Turn
		switch {
		case t.Note != nil:
			s.note(*t.Note)
		case t.Act != nil:
			s.act(t)
		default:
			s.answer(t)
		}
	}
	s.end(p)
	page := exhibit.Page{}
	page.Add(name, "Step by step", "", s.Replay)
	return page.All
}

// teller builds a story.
type teller struct {
	exhibit.Replay
	try  int
	step int // current step, from 1
	paid map[string]float64
}

// say adds a line to the last frame.
func (s *teller) say(who, to, text string) {
	s.Say(exhibit.FrameLine{Who: who, To: to, Text: shortened(text)})
}

// act describes an act and what the environment shows next.
func (s *teller) act(t world.TranscriptEntry) {
	switch t.Act.Name {
	case ActOpen:
		var o Opening
		var opened Opened
		_ = json.Unmarshal(t.Act.Body, &o)        // what cannot be read is not shown
		_ = json.Unmarshal(t.Reply.JSON, &opened) // as above
		s.try, s.paid = o.Try, map[string]float64{}
		s.Begin("The start%s", s.again())
		s.say("", "", fmt.Sprintf("%s with seed %d%s", o.Env, o.Seed, paramText(o.Params)))
		s.step = 0
		s.failed(environment, "", t.Reply)
		s.show(opened.Prompt)
	case ActList:
		var listed Listed
		_ = json.Unmarshal(t.Reply.JSON, &listed) // as above
		s.failed("tools", "", t.Reply)
		s.offers("tools", "", listed.Tools)
	case ActCall:
		var calling Calling
		var called Called
		_ = json.Unmarshal(t.Act.Body, &calling)  // as above
		_ = json.Unmarshal(t.Reply.JSON, &called) // as above
		s.failed("tools", calling.Seat, t.Reply)
		for _, m := range called.Results {
			s.say("tools", calling.Seat, messageText(m))
		}
	case ActStep:
		var stepped Stepped
		_ = json.Unmarshal(t.Reply.JSON, &stepped) // as above
		s.failed(environment, "", t.Reply)
		s.result(stepped, t)
		s.show(stepped.Prompt)
	}
}

func (s *teller) again() string {
	if s.try == 0 {
		return ""
	}
	return fmt.Sprintf(", try %d", s.try+1)
}

// paramText formats params, if there are any.
func paramText(params json.RawMessage) string {
	if text := fieldText(params, ", "); text != "" && text != "{}" && text != "null" {
		return ", " + text
	}
	return ""
}

// fieldText writes a JSON object as "name: value" with a separator, and anything else unchanged.
func fieldText(raw json.RawMessage, separator string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 {
		return string(raw)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := string(all[name])
		_ = json.Unmarshal(all[name], &value) // a text without its quotes
		parts = append(parts, name+": "+value)
	}
	return strings.Join(parts, separator)
}

// failed says that somebody did not answer.
func (s *teller) failed(who, to string, r world.Reply) {
	if !r.OK() {
		s.say(who, to, "failed: "+strings.ReplaceAll(string(r.Failed), "_", " "))
	}
}

// show begins the next step, with the new messages of the prompts.
func (s *teller) show(d Delta) {
	if len(d) == 0 {
		return
	}
	s.step++
	s.Begin("Step %d%s", s.step, s.again())
	for _, agent := range slices.Sorted(maps.Keys(d)) {
		to := agent
		if agent == DefaultAgent {
			to = ""
		}
		for _, m := range d[agent].Add {
			if m.Role != llm.RoleAssistant { // what agents said is shown already
				s.say(environment, to, messageText(m))
			}
		}
		if tools := d[agent].Tools; tools != nil {
			s.offers(environment, to, *tools)
		}
	}
}

// offers says which tools an agent can call from now on.
func (s *teller) offers(who, to string, tools ToolList) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	if len(names) > 0 {
		s.say(who, to, "(offers tools) "+strings.Join(names, ", "))
	}
}

func messageText(m llm.Message) string {
	text := m.Words()
	switch {
	case m.Role == llm.RoleSystem:
		return "(to begin with) " + text
	case m.Role == llm.RoleTool && m.ToolFailed:
		return "(a tool failed) " + text
	case m.Role == llm.RoleTool:
		return "(a tool answers) " + text
	default:
		return text
	}
}

// answer describes an agent's answer.
func (s *teller) answer(t world.TranscriptEntry) {
	who := t.Seat
	if t.Agent != "" && t.Agent != t.Seat {
		who += " (" + t.Agent + ")"
	}
	if t.Label == rubric.Judge {
		s.Begin("The judge")
	}
	switch {
	case !t.Reply.OK():
		s.failed(who, "", t.Reply)
	case t.Label == rubric.Judge:
		s.say(who, "", fieldText(t.Reply.JSON, "\n"))
	case t.Reply.Finish == llm.FinishLength:
		s.say(who, "", t.Reply.Text+"\n(cut off for its length)")
	default:
		s.say(who, "", (&llm.Response{Text: t.Reply.Text, ToolCalls: t.Reply.ToolCalls}).Words())
	}
}

// result describes the result of a step.
func (s *teller) result(r Stepped, t world.TranscriptEntry) {
	if !t.Reply.OK() {
		return
	}
	var parts []string
	for _, agent := range slices.Sorted(maps.Keys(r.Reward)) {
		s.paid[agent] += r.Reward[agent]
		part := fmt.Sprintf("reward %s, %s so far", formatNumber(r.Reward[agent]), formatNumber(s.paid[agent]))
		if agent != DefaultAgent {
			part = agent + ": " + part
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = []string{"no reward"}
	}
	switch {
	case r.Terminated:
		parts = append(parts, "done: terminated")
	case r.Truncated:
		parts = append(parts, "done: truncated")
	default:
		parts = append(parts, "not done")
	}
	if info := paramText(r.Info); info != "" {
		parts = append(parts, "info "+strings.TrimPrefix(info, ", "))
	}
	s.say("", "", strings.Join(parts, "; "))
}

// note describes the loss of an environment.
func (s *teller) note(n world.Note) {
	var again struct{ Why string }
	if n.Kind == "again" && json.Unmarshal(n.Data, &again) == nil {
		s.say("", "", "The environment was lost ("+again.Why+"): the episode begins again from a reset.")
	}
}

// end describes the outcome.
func (s *teller) end(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var d struct {
		Stop  string
		Steps int
		Rows  []Row
	}
	if json.Unmarshal(raw, &d) != nil || d.Stop == "" {
		return
	}
	s.Begin("The end")
	if p.Outcome.Failed != "" {
		s.say("", "", "failed: "+p.Outcome.Failed)
		return
	}
	s.say("", "", fmt.Sprintf("%s after %d steps", d.Stop, d.Steps))
	shown := map[string]bool{} // a row is an answer, and has what its seat got in all
	for _, r := range d.Rows {
		if r.Completed && !shown[r.Seat] {
			shown[r.Seat] = true
			s.say("", "", fmt.Sprintf("%s: reward %s in all", r.Seat, formatNumber(r.Reward)))
		}
	}
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// maxStoryText is how much of a text a story shows.
const maxStoryText = 4000

func shortened(text string) string { return exhibit.Shorten(strings.TrimSpace(text), maxStoryText) }
