package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/world/worldsim"
)

// update writes what follows: most of the actions, the events, and the mood.
func (p *player) update() any {
	_, done, _ := strings.Cut(p.prompt, before(standinDone))
	done, _, _ = strings.Cut(done, "\n"+before(standinTurn))
	var state, changes []string
	for _, m := range isDone.FindAllStringSubmatch(done, -1) {
		text := strings.TrimRight(m[1], ".")
		switch {
		case len(text) > 300:
			text = strings.ToValidUTF8(text[:300], "") + "…"
		case p.Float() < 0.2:
			text += ", and little comes of it"
		}
		if changes = append(changes, text); p.Float() < 0.8 {
			state = append(state, text+".")
		}
	}
	if m := isOutside.FindStringSubmatch(p.prompt + "\n\n"); m != nil {
		for _, e := range isEvent.FindAllStringSubmatch(m[1], -1) {
			state, changes = append(state, e[1]), append(changes, strings.TrimRight(e[1], "."))
		}
	}
	feeling := mood(strings.Join(state, " ")) + 0.3*(p.Float()-0.5)
	switch {
	case feeling > 0.08:
		state = append(state, p.Pick("The mood is calmer than it was: what was agreed holds so far.", "There is relief, and some trust that was not there before."))
	case feeling < -0.08:
		state = append(state, p.Pick("The mood is strained. Some accuse the others in public, and there is talk of an emergency.", "A first protest is announced, and each side lays the blame on another."))
	default:
		state = append(state, p.Pick("Not much has moved, and everybody watches everybody else.", "It is quiet, which nobody takes for an answer."))
	}
	if share, ok := firstShare(lastState(p.read)); ok {
		share = max(2, min(98, share+6*feeling+7*(p.Float()-0.62)))
		state = append([]string{fmt.Sprintf("The figure that everybody watches stands at %.0f percent after turn %d.", share, p.turn())}, state...)
	}
	out := map[string]any{
		"state": strings.Join(state, " "), "key_changes": nonNil(changes[:min(len(changes), 4)]),
		"consequences": []string{p.Pick("More talks before the next turn", "Somebody will have to move first", "The next turn is harder for those who waited", "Others outside begin to take an interest")},
		"hidden":       []string{},
	}
	if p.wants("black_swan") {
		out["black_swan"] = p.Pick("A storm that no forecast had cuts the region off for three days.", "A document that was meant to stay secret is printed in full in a newspaper.", "The most trusted person among those who negotiate resigns without giving a reason.")
	}
	return out
}

func firstShare(text string) (float64, bool) {
	m := standinIsShare.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	return f, err == nil && f <= 100
}

// summary lists the latest changes.
func (p *player) summary() string {
	source := p.read
	if strings.Contains(p.prompt, sumUp) {
		source = p.prompt
	}
	var lines []string
	for _, m := range isChange.FindAllStringSubmatch(source, -1) {
		lines = append(lines, strings.TrimRight(m[1], ".")+".")
	}
	if len(lines) == 0 {
		for _, m := range isDone.FindAllStringSubmatch(source, -1) {
			lines = append(lines, strings.TrimRight(m[1], ".")+".")
		}
	}
	if len(lines) == 0 {
		return "Nothing of weight was done or said."
	}
	return "In short: " + strings.Join(lines[max(0, len(lines)-8):], " ")
}

// measure returns a value for the quoted words: the share they name, or a level that depends
// on their mood, on the turn and on the name of the metric.
func (p *player) measure() any {
	var quoted []string
	for _, m := range isDone.FindAllStringSubmatch(p.read, -1) {
		quoted = append(quoted, m[1])
	}
	text := strings.Join(quoted, " ")
	name := firstMatch(isName, p.prompt, "metric")
	turn := p.measured()
	unsure := 0.02
	if worldsim.Small(p.model) {
		unsure = 0.06
	}
	good := 1.0
	if worldsim.HasWord(strings.ReplaceAll(strings.ToLower(name), "_", " "), "tension", "conflict", "risk", "unrest", "outage", "outages", "pressure", "harm", "load", "shortage", "concern", "strain") {
		good = -1
	}
	level := 0.25 + 0.35*hashed(name) + good*0.5*mood(text) + 0.015*turn + 0.2*(p.Float()-0.5)
	value := p.form.Properties["value"]
	out := map[string]any{"evidence": strings.TrimSpace(sentence.FindString(text)), "known": p.Float() >= unsure && text != ""}
	level = max(0.01, min(0.99, level))
	switch {
	case len(value.Enum) > 0:
		out["value"] = value.Enum[int(level*float64(len(value.Enum)))]
	case value.Type == "boolean":
		out["value"] = turn > 0 && level+0.04*turn > 0.7
	default:
		out["value"] = p.number(value, level, text)
	}
	return out
}

// measured returns the turn that is measured.
func (p *player) measured() float64 {
	at := firstMatch(isState, p.read, "0")
	if m := isDecided.FindStringSubmatch(p.read); m != nil {
		at = m[2]
	}
	turn, _ := strconv.ParseFloat(at, 64) // digits only
	return turn
}

func (p *player) number(value form, level float64, text string) float64 {
	share, ok := firstShare(text)
	if ok && value.Minimum == 0 && value.Maximum == 100 && strings.Contains(p.prompt, "percent") {
		return share
	}
	digits := 1.0
	if value.Maximum-value.Minimum < 20 {
		digits = 10
	}
	v := math.Round((value.Minimum+level*(value.Maximum-value.Minimum))*digits) / digits
	return max(value.Minimum, min(value.Maximum, v))
}

// check finds nothing in nine turns of ten.
func (p *player) check() any {
	issues := []map[string]string{}
	if p.Float() < 0.1 {
		severity := firstMatch(isSevere, p.prompt, "low")
		if p.Float() < 0.5 {
			severity = "low"
		}
		issues = append(issues, map[string]string{"severity": severity, "issue": p.Pick(
			"What is said to follow goes further than what was done.", "The account leaves out one of the actions of the turn.",
			"The reason that is given does not fit what was decided in the turn before.", "A number is not carried over from the situation before.")})
	}
	return map[string]any{"issues": issues, "explanation": p.Pick("Compared what was done with the situation after it.", "Went through the actions one by one.", "Held the turn against the one before.")}
}
