package planfile

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/yamltree"
	"parley/world"
)

// load fills params with the content of the files that they name, and reports errors in those files.
func (r *resolver) load(beside *Files) bool {
	if r.Source.Recorded {
		return true
	}
	if !beside.Foreign {
		beside.AllowTyped(r.Tree.Field("params"))
	}
	advice, err := r.plan.Kind.Load(r.plan.Params, beside)
	r.plan.Advice = append(r.plan.Advice, advice...)
	if len(beside.Refused) > 0 {
		r.refuse(beside, leaves(err))
		return false
	}
	if err == nil {
		full, err := json.Marshal(r.plan.Params.Pointer())
		if err == nil {
			r.plan.ParamsJSON, err = canonical(full, r.file.Params)
		}
		if err != nil {
			r.ComplainOfParams(r.plan.Kind.Name, err, yamltree.Path{"params"}, nil)
		}
		return err == nil
	}
	for _, one := range leaves(err) {
		if e, ok := one.(*Error); ok {
			r.beside = append(r.beside, e)
		} else {
			r.ComplainOfParams(r.plan.Kind.Name, one, yamltree.Path{"params"}, nil)
		}
	}
	return false
}

// joined is an error made of several, as by errors.Join.
type joined interface{ Unwrap() []error }

// leaves lists the errors that err joins.
func leaves(err error) []error {
	if _, ok := err.(*Error); ok {
		return []error{err}
	}
	if many, ok := err.(joined); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	return []error{err}
}

// err returns the errors in the plan and in the files that it names.
func (r *resolver) err() error {
	all, _ := r.Report.Err().(Errors)
	if all = append(slices.Clip(all), r.beside...); len(all) == 0 {
		return nil
	}
	return all
}

// seatModels puts the models that the files name into seats that the plan leaves empty, as agents
// with the names of the models.
func (r *resolver) seatModels() {
	if !r.plan.Kind.ChoosesModels() || !r.seated {
		return
	}
	var varied []string // seats of the matrix
	if p := r.file.Plan; p != nil && p.Matrix != nil {
		if len(p.Matrix.Seats) == 0 && len(p.Matrix.Agents) > 0 {
			return // the matrix fills every empty seat
		}
		varied = slices.AppendSeq(slices.Clone(p.Matrix.Seats), maps.Keys(p.Matrix.OwnSeats()))
	}
	models := r.plan.Kind.Models(r.plan.Params)
	lineup := maps.Clone(r.plan.Lineup)
	if lineup == nil {
		lineup = map[string]string{}
	}
	for _, seat := range r.emptySeats() {
		model := models[seat]
		if model == "" || slices.Contains(varied, seat) {
			continue
		}
		name := cut(notInAgentName.ReplaceAllString(model, "_"), 64)
		lineup[seat] = name
		if _, there := r.plan.Agent(name); !there {
			r.model(model, yamltree.Path{"params"})
			r.plan.Agents = append(r.plan.Agents, world.Agent{Name: name, Model: model})
		}
	}
	r.plan.Lineup = lineup
	slices.SortFunc(r.plan.Agents, func(a, b world.Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.plan.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// notInAgentName matches the characters that isAgentName refuses.
var notInAgentName = regexp.MustCompile(`[^\pL\pN_.@+/-]`)

func cut(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// bound checks the files that are named outside params.
func (r *resolver) bound(beside *Files) {
	for _, key := range []string{"prices", "cache", "out"} {
		n := r.Tree.Field(key)
		if n == nil || n.Form != yamltree.Text || n.Text == "" || key == "cache" && n.Text == "off" || n.At.Set != "" && !beside.Foreign {
			continue
		}
		if err := beside.Check(beside.Path(n.Text)); err != nil {
			r.Complain(yamltree.Path{key}, "%v", err)
		}
	}
	beside.Refused = nil // they have been reported
}

// refuse reports the files that params must not name, and not the errors that follow from that. A
// refused file that another file names is reported at its position in that file.
func (r *resolver) refuse(beside *Files, errs []error) {
	for _, one := range beside.Refused {
		said := false
		for _, err := range errs {
			e, ok := err.(*Error)
			if ok && e.Line > 0 && strings.Contains(e.Problem, one.Problem) {
				r.beside, said = append(r.beside, e), true
			}
		}
		if !said {
			p, _ := beside.Naming(r.Tree.Field("params"), one.Path, yamltree.Path{"params"})
			if p == nil {
				p = yamltree.Path{"params"}
			}
			r.Complain(p, "%s", one.Problem)
		}
	}
}
