package viewer

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/internal/run/control"
	"parley/internal/run/seat"
	"parley/world"
)

// input is a field of a form in a page.
type input struct {
	*seat.Field
	ID      string // its key in the form
	Value   string
	Problem string
	Picked  []string   // of a list of choices
	Fields  []*input   // of a group
	Rows    [][]*input // of a list of groups
	Offers  []*Offer
}

// Offer is a choice that a world offers.
type Offer struct {
	world.Choice
	ID     string
	Picked string
}

// emptyRows is how many rows of a list are empty in a new form.
const emptyRows = 3

// inputs returns the inputs for fields. get returns what was filled in.
func inputs(fields []*seat.Field, row string, get func(string) []string, problems map[string]string) []*input {
	out := make([]*input, len(fields))
	for i, f := range fields {
		key := f.In(row)
		in := &input{Field: f, ID: key, Problem: problems[key], Picked: get(key)}
		switch {
		case len(f.Offered) > 0:
			for n, c := range f.Offered {
				o := &Offer{Choice: c, ID: key + "-" + strconv.Itoa(n)}
				if n < len(in.Picked) {
					o.Picked = in.Picked[n]
				}
				in.Offers = append(in.Offers, o)
			}
		case f.List && f.Type == seat.Group:
			filled := 0
			for n := range seat.MaxRows {
				one := inputs(f.Fields, strconv.Itoa(n), get, problems)
				if slices.ContainsFunc(one, func(i *input) bool { return i.Value != "" }) {
					filled = n + 1
				}
				in.Rows = append(in.Rows, one)
			}
			in.Rows = in.Rows[:min(seat.MaxRows, filled+emptyRows)]
		case f.Type == seat.Group:
			in.Fields = inputs(f.Fields, "", get, problems)
		default:
			in.Value = strings.Join(in.Picked, "\n")
		}
		out[i] = in
	}
	return out
}

// Has reports whether an option is picked.
func (in *input) Has(option string) bool { return slices.Contains(in.Picked, option) }

// Lines reports whether the input is a list of texts, one a line.
func (in *input) Lines() bool {
	return in.List && in.Type != seat.Choice && in.Type != seat.Group && len(in.Offered) == 0
}

// answer passes what was filled in to the process that plays the run. It returns nil if the answer was accepted, and
// the page with what is wrong otherwise.
func (s *server) answer(ctx context.Context, r *Run, name, to string, filled url.Values) (*Page, error) {
	p, err := readPage(ctx, r, name, to)
	if err != nil {
		return nil, err
	}
	q := p.Question
	if q == nil || q.ID != filled.Get("question") {
		p.Problem = "This question is not open any more: your answer was not used."
		return p, nil
	}
	text := strings.ReplaceAll(filled.Get("text"), "\r\n", "\n")
	f, ok := seat.Of(q.Schema, q.Offer)
	if ok {
		get := func(key string) []string { return seatsTexts(q.Inputs, key, filled[key]) }
		value, problems := f.Answer(get)
		text = string(value)
		if len(problems) > 0 {
			p.Problem = "Some fields need your attention."
			q.Inputs = inputs(f.Fields, "", get, problems)
			return p, nil
		}
		q.Inputs = inputs(f.Fields, "", get, nil)
	} else {
		q.Text = text
	}
	s.Wait(func() { err = seat.Send(ctx, r.Path, seat.Answer{Question: q.ID, Seat: name, Text: text}) })
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, control.ErrNotPlayed) {
		p.Problem = "Nobody plays the run at the moment. Send your answer again when it is resumed."
		return p, nil
	}
	p.Problem = "Your answer was not accepted: " + place(err.Error(), q.Inputs)
	return p, nil
}

// seatsTexts returns what was filled in for a key: the lines of a list of seatsTexts are its items.
func seatsTexts(all []*input, key string, filled []string) []string {
	for _, in := range all {
		if in.ID == key && in.Lines() && len(filled) > 0 {
			return strings.Split(strings.ReplaceAll(filled[0], "\r\n", "\n"), "\n")
		}
	}
	out := make([]string, len(filled))
	for i, text := range filled {
		out[i] = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return out
}

// place puts each part of a refusal beside the field that it names, and returns the rest.
func place(refusal string, all []*input) string {
	var rest []string
	for part := range strings.SplitSeq(refusal, "; ") {
		where, what, _ := strings.Cut(part, ": ")
		if i := strings.IndexAny(where, ".["); i >= 0 {
			where = where[:i]
		}
		i := slices.IndexFunc(all, func(in *input) bool { return in.Name == where && what != "" })
		if i < 0 {
			rest = append(rest, part)
			continue
		}
		all[i].Problem = strings.TrimPrefix(all[i].Problem+"; "+what, "; ")
	}
	if len(rest) == 0 {
		return "see below."
	}
	return strings.Join(rest, "; ")
}
