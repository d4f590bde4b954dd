package scenario

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/scenario/script"
)

// episodeStory shows an episode turn by turn: a picture of who spoke to whom, and beside it what
// was said, decided, told, measured and checked.
func episodeStory(entries []world.TranscriptEntry) []exhibit.Exhibit {
	c := readChronicle(world.NotesOf(entries))
	if len(c.Actors) == 0 || len(c.chapters) == 0 {
		return nil
	}
	began := map[string]string{} // in which turn of the transcript, by phase
	for _, e := range entries {
		if e.Note != nil {
			began[e.Note.Phase()] = e.Turn
		}
	}
	show := exhibit.Replay{Base: newGraph(c.names(c.Actors)).svg(true, false)}
	for _, at := range c.chapters {
		frame := exhibit.Frame{Title: fmt.Sprintf("Turn %d of %d", at.number, c.Turns), Lines: c.frameLines(at), Turn: began[phaseOf(at.number)], SVG: c.graph(at).svg(false, true)}
		if at.number == 0 {
			frame.Title, frame.Turn = "The start", entries[0].Turn
		}
		show.Frames = append(show.Frames, frame)
	}
	if c.end != nil && len(show.Frames) > 0 {
		last := &show.Frames[len(show.Frames)-1]
		last.Lines = append(last.Lines, exhibit.FrameLine{Text: "It is over: " + c.end.Why + "."})
	}
	return []exhibit.Exhibit{{
		Name: "scenario-replay", Title: "Turn by turn", Show: show,
		Caption: "Arrows are private messages of the turn, a ring is a statement in public, a surface between actors a coalition that was formed.",
	}}
}

// phaseOf returns the name of the phase of a turn.
func phaseOf(turn int) string { return fmt.Sprintf("turn %d", turn) }

// graph returns the graph of who spoke to whom in a turn.
func (c *chronicle) graph(at *chapter) *graph {
	g := newGraph(c.names(c.Actors))
	index := func(short string) int { return slices.Index(c.Actors, short) }
	for _, m := range notesOf[messageNote](at, "message") {
		if from, to := index(m.seat), index(m.note.To); from >= 0 && to >= 0 {
			g.wrote[from][to]++
		}
	}
	for _, s := range notesOf[statementNote](at, "statement") {
		if i := index(s.seat); i >= 0 {
			g.loud[i] = true
		}
	}
	for _, p := range notesOf[coalitionNote](at, "coalition") {
		var members []int
		for _, m := range p.note.Members {
			if i := index(m); i >= 0 {
				members = append(members, i)
			}
		}
		if p.note.Formed {
			g.groups = append(g.groups, members)
		}
	}
	return g
}

// frameLines describes a turn in the order in which it happened.
func (c *chronicle) frameLines(at *chapter) []exhibit.FrameLine {
	var lines []exhibit.FrameLine
	add := func(who, to, format string, args ...any) {
		lines = append(lines, exhibit.FrameLine{Who: who, To: to, Text: fmt.Sprintf(format, args...)})
	}
	for _, s := range notesOf[statementNote](at, "statement") {
		add(c.name(s.seat), "all", "%s", s.note.Text)
	}
	for _, m := range notesOf[messageNote](at, "message") {
		add(c.name(m.seat), c.name(m.note.To), "%s", m.note.Text)
	}
	for _, p := range notesOf[coalitionNote](at, "coalition") {
		add(c.name(p.seat), strings.Join(c.names(p.note.Members), ", "), "%s", coalitionText(c, p.note))
	}
	for _, d := range notesOf[decisionNote](at, "decision") {
		add(c.name(d.seat), "", "%s", decisionText(d.note))
	}
	for _, s := range notesOf[silenceNote](at, "silence") {
		add(c.name(s.seat), "", "did nothing%s", because(string(s.note.Failed)))
	}
	for _, e := range notesOf[eventNote](at, "event") {
		add("", "", "From outside, %s: %s", e.note.Name, e.note.Description)
	}
	if w := c.world(at); w != nil {
		add("narrator", "", "%s", worldText(*w))
	}
	for _, line := range c.findingLines(at) {
		add("", "", "%s", line)
	}
	return lines
}

// findingLines describes what was measured and checked in a turn.
func (c *chronicle) findingLines(at *chapter) []string {
	var metrics, lines []string
	for _, m := range notesOf[metricNote](at, "metric") {
		metrics = append(metrics, c.own(m.seat, m.note.Name)+" "+metricText(m.note))
	}
	if len(metrics) > 0 {
		lines = append(lines, "Measured: "+strings.Join(metrics, "; ")+".")
	}
	for _, t := range notesOf[thresholdNote](at, "threshold") {
		lines = append(lines, fmt.Sprintf("%s passed its %s threshold of %g with %g.", c.own(t.seat, t.note.Name), t.note.Level, t.note.Limit, t.note.Value))
	}
	for _, f := range notesOf[checkNote](at, "check") {
		what := "Check " + c.own(f.seat, strings.ReplaceAll(f.note.Check, "_", " "))
		switch {
		case f.note.Unknown:
			lines = append(lines, what+": unknown"+because(string(f.note.Failed))+".")
		case f.note.Passed:
			lines = append(lines, what+": passed.")
		}
		for _, i := range f.note.Issues {
			lines = append(lines, what+", "+i.Severity+": "+i.Text)
		}
	}
	return lines
}

// own puts the name of an actor before what belongs to it.
func (c *chronicle) own(seat, what string) string {
	if seat == "" {
		return what
	}
	return c.name(seat) + "'s " + what
}

func because(failed string) string {
	if failed == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(failed, "_", " ") + ")"
}

// titledLines is lines with a title.
type titledLines struct {
	title string
	lines []string
}

// joinParts adds the parts that are not empty to a text, one line each.
func joinParts(text string, parts ...titledLines) string {
	lines := []string{text}
	for _, p := range parts {
		if words := slices.DeleteFunc(slices.Clone(p.lines), func(l string) bool { return l == "" }); len(words) > 0 {
			lines = append(lines, p.title+": "+strings.Join(words, "; "))
		}
	}
	return strings.Join(lines, "\n")
}

func decisionText(d decisionNote) string {
	return joinParts("Does: "+d.Action, titledLines{"Why", []string{d.Reasoning}}, titledLines{"Goals", d.LongTerm}, titledLines{"Next", d.ShortTerm},
		titledLines{"Goals added", d.Added}, titledLines{"Goals dropped", d.Dropped}, titledLines{"Learned", []string{d.Reflection}})
}

func worldText(w worldNote) string {
	text := w.State
	if w.Stale {
		text = "No account was written" + because(string(w.Failed)) + ": the situation stays as it was."
	}
	return joinParts(text, titledLines{"What changed", w.Changes}, titledLines{"What may follow", w.Consequences}, titledLines{"Not known in public", w.Hidden})
}

func coalitionText(c *chronicle, p coalitionNote) string {
	var parts []titledLines
	for _, a := range p.Answers {
		verb := "declines"
		if a.Accepts {
			verb = "accepts"
		}
		parts = append(parts, titledLines{c.name(a.Actor) + " " + verb, []string{a.Text}})
	}
	return joinParts("proposes a coalition: "+p.Purpose, append(parts, titledLines{"Agreed", []string{p.Agreed}}, titledLines{"In public", []string{p.Statement}})...)
}

// graph draws who speaks to whom: actors on a circle, an arrow for what one wrote to
// another. It takes its colour from the page around it.
type graph struct {
	names []string
	width float64 // as wide as the longest name needs
	// wrote is the number of messages, by sender and recipient.
	wrote [][]float64
	// loud marks actors that spoke in public.
	loud []bool
	// groups has the coalitions that were formed.
	groups [][]int
}

// The sizes of the picture; letter is the maximum width of a letter.
const (
	graphHeight = 340.0
	graphRadius = 115.0
	nodeRadius  = 9.0
	letter      = 7.8
)

func newGraph(names []string) *graph {
	g := &graph{names: names, loud: make([]bool, len(names)), wrote: make([][]float64, len(names))}
	longest := 0
	for _, name := range names {
		for _, line := range nameLines(name) {
			longest = max(longest, utf8.RuneCountInString(line))
		}
	}
	g.width = 2 * (graphRadius + nodeRadius + 12 + letter*float64(longest))
	for i := range g.wrote {
		g.wrote[i] = make([]float64, len(names))
	}
	return g
}

// svg draws nodes, or arrows and coalitions, or both.
func (g *graph) svg(nodes, arrows bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %g" width="%.0f" fill="none" stroke="currentColor">`, g.width, graphHeight, g.width)
	if arrows {
		for _, members := range g.groups {
			g.group(&b, members)
		}
		largest := g.largest()
		for from := range g.names {
			for to := range g.names {
				if w := g.wrote[from][to]; w > 0 && from != to {
					g.arrow(&b, from, to, w, math.Pow(w/largest, 3)) // emphasizes the largest
				}
			}
		}
		for i, loud := range g.loud {
			if x, y := g.at(i); loud {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%g" stroke-width="1.5" stroke-dasharray="3 3"><title>%s spoke in public</title></circle>`, x, y, nodeRadius+6, html.EscapeString(g.names[i]))
			}
		}
	}
	if nodes {
		for i := range g.names {
			g.node(&b, i)
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

func (g *graph) largest() float64 {
	largest := 0.0
	for _, row := range g.wrote {
		largest = max(largest, slices.Max(row))
	}
	return largest
}

// at returns the position of a node: the first at the top, then clockwise.
func (g *graph) at(i int) (x, y float64) {
	angle := 2*math.Pi*float64(i)/float64(max(1, len(g.names))) - math.Pi/2
	return g.width/2 + graphRadius*math.Cos(angle), graphHeight/2 + graphRadius*math.Sin(angle)
}

func (g *graph) node(b *strings.Builder, i int) {
	x, y := g.at(i)
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="currentColor" stroke="none"/>`, x, y, nodeRadius)
	anchor, dx, dy := "middle", 0.0, -nodeRadius-11
	switch {
	case x > g.width/2+1:
		anchor, dx, dy = "start", nodeRadius+10, 4
	case x < g.width/2-1:
		anchor, dx, dy = "end", -nodeRadius-10, 4
	case y > graphHeight/2:
		dy = nodeRadius + 21
	}
	lines := nameLines(g.names[i])
	switch {
	case len(lines) == 2 && dy > nodeRadius: // below its node
	case len(lines) == 2 && dy < 0:
		dy -= nameHeight
	default:
		dy -= nameHeight / 2 * float64(len(lines)-1)
	}
	for n, line := range lines {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="14" fill="currentColor" stroke="none">%s</text>`, x+dx, y+dy+nameHeight*float64(n), anchor, html.EscapeString(line))
	}
}

// nameHeight is the distance between the lines of a name.
const nameHeight = 16.0

// nameLines splits a long name into two lines.
func nameLines(name string) []string {
	name = script.Cut(script.OneLine(name), 36)
	if utf8.RuneCountInString(name) <= 16 {
		return []string{name}
	}
	best := -1
	for i, r := range name {
		if r == ' ' && (best < 0 || abs(2*i-len(name)) < abs(2*best-len(name))) {
			best = i
		}
	}
	if best < 0 {
		return []string{name}
	}
	return []string{name[:best], name[best+1:]}
}

func abs(n int) int { return max(n, -n) }

// arrow draws an arrow for messages, bent to its left so that both directions are visible.
func (g *graph) arrow(b *strings.Builder, from, to int, weight, share float64) {
	x1, y1 := g.at(from)
	x2, y2 := g.at(to)
	length := math.Hypot(x2-x1, y2-y1)
	ux, uy := (x2-x1)/length, (y2-y1)/length
	// The middle of the bend, and the ends outside of the nodes.
	mx, my := (x1+x2)/2-uy*22, (y1+y2)/2+ux*22
	ex, ey := x2-ux*(nodeRadius+4)-uy*4, y2-uy*(nodeRadius+4)+ux*4
	sx, sy := x1+ux*(nodeRadius+4)-uy*4, y1+uy*(nodeRadius+4)+ux*4
	tip := fmt.Sprintf("%s to %s: %.3g", g.names[from], g.names[to], weight)
	fmt.Fprintf(b, `<g opacity="%.2f"><title>%s</title><path d="M%.1f %.1fQ%.1f %.1f %.1f %.1f" stroke-width="%.1f"/>`, 0.2+0.65*share, html.EscapeString(tip), sx, sy, mx, my, ex, ey, 0.8+3.2*share)
	// The head points along the end of the bend.
	hx, hy := ex-mx, ey-my
	h := math.Hypot(hx, hy)
	hx, hy = hx/h, hy/h
	size := 6 + 3*share
	fmt.Fprintf(b, `<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="currentColor" stroke="none"/></g>`,
		ex+hx*2, ey+hy*2, ex-hx*size-hy*size/2, ey-hy*size+hx*size/2, ex-hx*size+hy*size/2, ey-hy*size-hx*size/2)
}

// group draws a coalition as the area between its members.
func (g *graph) group(b *strings.Builder, members []int) {
	points, names := make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		x, y := g.at(m)
		points[i], names[i] = fmt.Sprintf("%.1f,%.1f", x, y), g.names[m]
	}
	fmt.Fprintf(b, `<polygon points="%s" fill="currentColor" fill-opacity="0.1" stroke-width="1" stroke-dasharray="5 4"><title>coalition of %s</title></polygon>`,
		strings.Join(points, " "), html.EscapeString(strings.Join(names, ", ")))
}
