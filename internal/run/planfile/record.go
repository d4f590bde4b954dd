package planfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/files"
	"parley/internal/run/planner"
	"parley/world"
)

// recorded is a Plan in the form of a plan file with all defaults.
type recorded struct {
	Kind      string                    `json:"kind"`
	Seed      uint64                    `json:"seed"`
	Episodes  int                       `json:"episodes,omitempty"`
	Plan      *planSection              `json:"plan,omitempty"`
	Providers map[string]map[string]any `json:"providers,omitempty"`
	Agents    map[string]map[string]any `json:"agents"`
	Lineup    map[string]string         `json:"lineup,omitempty"`
	Train     *planner.Train            `json:"train,omitempty"`
	Params    json.RawMessage           `json:"params,omitempty"`
	Loaded    bool                      `json:"loaded,omitempty"`
	Limits    map[string]any            `json:"limits,omitempty"`
	*settings.Settings
	Batch map[string]any `json:"batch,omitempty"`
	Retry map[string]any `json:"retry,omitempty"`
	Out   string         `json:"out,omitempty"`
}

// JSON returns the plan as it is recorded with a run: a plan file in JSON from which FromJSON makes
// an equal Plan. It names environment variables, and holds no secret.
func (p *Plan) JSON() json.RawMessage {
	set, defaults := *p.Settings, settings.New(settings.Plan)
	set.Cache, set.Prices = cmp.Or(recordedPath(p.Folder, p.Cache), "off"), recordedPath(p.Folder, p.Prices)
	r := recorded{
		Kind: p.Kind.Name, Seed: p.Seed, Episodes: p.Episodes,
		Providers: map[string]map[string]any{}, Agents: map[string]map[string]any{},
		Lineup: p.Lineup, Train: p.trains, Params: p.ParamsJSON, Loaded: p.Loaded, Out: recordedPath(p.Folder, p.Out),
		Settings: &set, Limits: changed(set.Limits, defaults.Limits), Batch: changed(set.Batch, defaults.Batch), Retry: changed(set.Retry, defaults.Retry),
	}
	if p.Matrix != nil || p.Until != nil {
		r.Plan = &planSection{p.Matrix, p.Until}
	}
	for _, one := range p.Providers {
		if p.Nested != nil && slices.ContainsFunc(p.Nested.Providers, func(own provider.Provider) bool { return own.Name == one.Name }) {
			continue
		}
		r.Providers[one.Name] = recordProvider(one)
	}
	nested := p.nestedAgents()
	for _, a := range p.Agents {
		if slices.Contains(p.others, a.Name) || slices.ContainsFunc(nested, func(own world.Agent) bool { return own.Name == a.Name }) {
			continue
		}
		r.Agents[a.Name] = recordAgent(a)
	}
	b, err := json.Marshal(r)
	if err != nil {
		// Not reached for a plan that was loaded.
		return json.RawMessage(`{"error":` + fmt.Sprintf("%q", err) + `}`)
	}
	return b
}

// recordProvider writes a provider without its name. It also writes the zero values of fields that
// a preset sets: otherwise reading would set them again.
func recordProvider(p provider.Provider) map[string]any {
	m := asMap(p)
	if preset, ok := provider.Lookup(p.Name); ok {
		for k, v := range asMap(preset) {
			if _, there := m[k]; !there {
				m[k] = zeroOf(v)
			}
		}
	}
	if len(p.BaseURLs) > 0 { // reading drops the preset's server and batch API
		delete(m, "base_url")
		delete(m, "batch")
	}
	if p.Timeout > 0 {
		m["timeout"] = p.Timeout.String()
	}
	delete(m, "name")
	return m
}

// changed returns the fields of a struct that do not have their defaults, as a plan file has them.
func changed[T any](now, defaults T) map[string]any {
	m, was := map[string]any{}, reflect.ValueOf(defaults)
	for f, value := range reflect.ValueOf(now).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || value.Equal(was.FieldByIndex(f.Index)) {
			continue
		}
		m[name] = value.Interface()
		if d, ok := m[name].(time.Duration); ok {
			m[name] = d.String()
		}
	}
	return m
}

func recordAgent(a world.Agent) map[string]any {
	m := asMap(a)
	delete(m, "name")
	if a.Deadline > 0 {
		m["deadline"] = a.Deadline.String()
	}
	return m
}

// asMap returns a struct as JSON has it.
func asMap(v any) map[string]any {
	m := map[string]any{}
	_ = remarshal(v, &m) // plain structs of plain values
	return m
}

// zeroOf returns the zero value of v's JSON type.
func zeroOf(v any) any {
	switch v.(type) {
	case bool:
		return false
	case string:
		return ""
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return 0
}

// recordedPath returns a path as it is recorded in a run file in folder: with slashes, and relative to folder. An absolute
// path that leads out of folder stays as it is, and so does every path if no folder is known.
func recordedPath(folder, path string) string {
	if path == "" || folder == "" {
		return path
	}
	whole := filepath.Join(files.Resolve(filepath.Dir(path)), filepath.Base(path))
	relative, err := filepath.Rel(files.Resolve(folder), whole)
	if err != nil {
		return whole // on another volume
	}
	if filepath.IsAbs(path) && !filepath.IsLocal(relative) {
		return path
	}
	return filepath.ToSlash(relative)
}
