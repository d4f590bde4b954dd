package diplomacy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/world"
	"parley/world/program"
	"parley/worlds/diplomacy/rules"
)

// maxPosition is the longest line of a position: more than any board can fill.
const maxPosition = 1 << 20

// Commands returns the command that adjudicates positions for other programs.
func (*definition) Commands() []program.Command {
	return []program.Command{{Name: "adjudicate", Doc: "Adjudicate Diplomacy orders, read as JSON lines.", Verb: &adjudicateVerb{}}}
}

// adjudicateVerb reads positions and orders as JSON lines and writes their results. It answers each
// line as soon as it is read, and a line that it cannot read with an error.
// docs/how-to/adjudicate.md describes both sides.
type adjudicateVerb struct {
	Options bool `help:"Write the legal orders of each location instead."`
}

// positionLine is a line of input. All keys are optional.
type positionLine struct {
	ID        json.RawMessage     `json:"id"`     // repeated in the output
	Phase     string              `json:"phase"`  // Default: movement
	Season    string              `json:"season"` // Default: spring, for adjustments winter
	Year      int                 `json:"year"`   // Default: 1901
	Units     map[string][]string `json:"units"`
	Centers   map[string][]string `json:"centers"`
	Dislodged []dislodgedUnit     `json:"dislodged"`
	Orders    map[string][]string `json:"orders"`
}

// dislodgedUnit is a unit that must retreat.
type dislodgedUnit struct {
	Power    string   `json:"power"`
	Unit     string   `json:"unit"`
	Attacker string   `json:"attacker"`
	Retreats []string `json:"retreats"`
}

// judgedLine is a line of output.
type judgedLine struct {
	ID      json.RawMessage     `json:"id,omitempty"`
	Results map[string][]string `json:"results"`
	After   judgedPosition      `json:"after"`
}

type judgedPosition struct {
	Units     map[string][]string `json:"units"`
	Dislodged []dislodgedUnit     `json:"dislodged"`
	Centers   map[string][]string `json:"centers"`
}

// refusedLine is written for a line that cannot be read.
type refusedLine struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Line  int             `json:"line"`
	Error string          `json:"error"`
}

// Run answers line by line, each as soon as it is read.
func (c *adjudicateVerb) Run(_ context.Context, p *program.Program) error {
	lines := &lineReader{in: bufio.NewReaderSize(p.Stdin, maxPosition)}
	out := json.NewEncoder(p.Stdout)
	out.SetEscapeHTML(false)
	a := adjudicator{rules: rules.New(), options: c.Options}
	failed := false
	for p.Stop.Err() == nil {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return fmt.Errorf("stdin: %w", err)
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var answer any
		if err == nil {
			answer, err = a.answer(line)
		}
		if err != nil {
			failed = true
			answer = refusedLine{ID: a.id, Line: lines.number, Error: err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	if failed && p.Stop.Err() == nil {
		return program.ErrReported
	}
	return context.Cause(p.Stop) //nolint:contextcheck // Stop ends with ctx, or before
}

var errLongLine = errors.New("the line is too long")

// lineReader reads lines of bounded length.
type lineReader struct {
	in     *bufio.Reader
	number int // of the last line
}

// next returns the next line, valid until the following call. It returns errLongLine for one over the bound.
func (r *lineReader) next() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	r.number++
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.in.ReadSlice('\n')
	}
	switch {
	case long:
		return nil, errLongLine
	case errors.Is(err, io.EOF) && len(line) > 0:
		err = nil // the last line has no end
	}
	if r.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, err
}

// adjudicator answers lines.
type adjudicator struct {
	rules   *rules.Rules
	options bool
	id      json.RawMessage // of the last line, if it could be read
}

// answer returns the answer to a line.
func (a *adjudicator) answer(line []byte) (any, error) {
	a.id = nil
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not valid UTF-8")
	}
	if first := bytes.TrimSpace(line); first[0] != '{' {
		return nil, errors.New("a position is an object: {\"units\": …, \"orders\": …}")
	}
	var in positionLine
	if err := world.DecodeStrict(line, &in); err != nil {
		return nil, err
	}
	a.id = in.ID
	p, err := a.position(&in)
	if err != nil {
		return nil, err
	}
	if a.options {
		return a.legalOrders(&p), nil
	}
	return a.judge(&p, &in)
}

// position reads the position of a line. Without units and centres it is that of the
// game's beginning.
func (a *adjudicator) position(in *positionLine) (rules.Position, error) {
	p := rules.Position{}
	if in.Units == nil && in.Centers == nil && in.Dislodged == nil {
		p = a.rules.Start()
	}
	var err error
	if p.Phase, err = in.phase(); err != nil {
		return p, err
	}
	if err := a.rules.Fill(&p, in.Units, in.Centers); err != nil {
		return p, err
	}
	if len(in.Dislodged) > 0 && p.Phase.Step != rules.Retreats {
		return p, fmt.Errorf("dislodged: units retreat in phase \"retreat\", not in %q", p.Phase.Step)
	}
	for i, d := range in.Dislodged {
		w, ok := rules.ParsePower(d.Power)
		if !ok {
			return p, fmt.Errorf("dislodged: %d: unknown power %q", i, d.Power)
		}
		if err := a.rules.Dislodge(&p, w, d.Unit, d.Attacker, d.Retreats); err != nil {
			return p, fmt.Errorf("dislodged: %d: %w", i, err)
		}
	}
	return p, nil
}

// phase reads the phase of a line.
func (in *positionLine) phase() (rules.Phase, error) {
	p := rules.First()
	switch strings.ToLower(in.Phase) {
	case "", "movement":
	case "retreat":
		p.Step = rules.Retreats
	case "adjustment":
		p.Step = rules.Adjustments
	default:
		return p, fmt.Errorf("unknown phase %q; want one of movement, retreat, adjustment", in.Phase)
	}
	switch strings.ToLower(in.Season) {
	case "", "spring":
	case "fall", "autumn":
		p.Season = rules.Fall
	case "winter":
		p.Season = rules.Winter
	default:
		return p, fmt.Errorf("unknown season %q; want one of spring, fall, winter", in.Season)
	}
	if p.Step == rules.Adjustments {
		p.Season = rules.Winter
	} else if p.Season == rules.Winter {
		return p, errors.New("season: in winter there are adjustments only")
	}
	if in.Year < 0 || in.Year > 9999 {
		return p, fmt.Errorf("year: %d: use 1 to 9999", in.Year)
	}
	if in.Year != 0 {
		p.Year = in.Year
	}
	return p, nil
}

// legalOrders returns the legal orders by location.
func (a *adjudicator) legalOrders(p *rules.Position) map[string]any {
	out := map[string]any{}
	for _, c := range a.rules.Choices(p) {
		texts := make([]string, len(c.Orders))
		for i, o := range c.Orders {
			texts[i] = o.Text(a.rules.Board)
		}
		out[a.rules.Board.Code(rules.Location(c.At))] = texts
	}
	if a.id != nil {
		out["id"] = a.id
	}
	return out
}

// orderIndex is the index of an order's result, or -1 if the order could not be read.
type orderIndex struct {
	power rules.Power
	index int
}

// judge carries out the orders of a line.
func (a *adjudicator) judge(p *rules.Position, in *positionLine) (*judgedLine, error) {
	lists, err := rules.ByPower(in.Orders)
	if err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	var orders rules.Orders
	keys := map[string]orderIndex{}
	for w, texts := range lists {
		for _, text := range texts {
			at := orderIndex{rules.Power(w), -1}
			if o, err := rules.Parse(a.rules.Board, text); err == nil {
				at.index = len(orders[w])
				orders[w] = append(orders[w], o)
			}
			keys[freeKey(keys, text)] = at
		}
	}
	out := a.rules.Adjudicate(p, &orders)
	line := &judgedLine{ID: a.id, Results: map[string][]string{}}
	for key, at := range keys {
		codes := []string{rules.Illegal.String()}
		if at.index >= 0 {
			codes = out.Results[at.power][at.index].Codes()
		}
		line.Results[key] = codes
	}
	line.After = a.after(&out.After, in.capitals())
	return line, nil
}

// freeKey is the text of an order, numbered if it was given before.
func freeKey(keys map[string]orderIndex, text string) string {
	key := text
	for n := 2; ; n++ {
		if _, taken := keys[key]; !taken {
			return key
		}
		key = fmt.Sprintf("%s (%d)", text, n)
	}
}

// capitals reports whether the line writes its powers in capitals.
func (in *positionLine) capitals() bool {
	var names []string
	for _, lists := range []map[string][]string{in.Units, in.Centers, in.Orders} {
		for name := range lists {
			names = append(names, name)
		}
	}
	for _, d := range in.Dislodged {
		names = append(names, d.Power)
	}
	return slices.ContainsFunc(names, func(name string) bool { return name == strings.ToUpper(name) })
}

// after returns a position as a line has it.
func (a *adjudicator) after(p *rules.Position, capitals bool) judgedPosition {
	name := rules.Power.Name
	if capitals {
		name = rules.Power.String
	}
	out := judgedPosition{Units: map[string][]string{}, Dislodged: []dislodgedUnit{}, Centers: map[string][]string{}}
	for _, w := range rules.Powers() {
		if units := a.rules.UnitTexts(p, w); len(units) > 0 {
			out.Units[name(w)] = units
		}
		if centres := a.rules.CentreTexts(p, w); len(centres) > 0 {
			out.Centers[name(w)] = centres
		}
	}
	for i := range p.Dislodged {
		if d := &p.Dislodged[i]; d.Unit.Power != rules.None {
			out.Dislodged = append(out.Dislodged, dislodgedUnit{
				Power: name(d.Unit.Power), Unit: a.rules.Board.UnitText(d.Unit),
				Attacker: a.rules.Board.Code(d.Attacker), Retreats: a.rules.RetreatTexts(d),
			})
		}
	}
	return out
}
