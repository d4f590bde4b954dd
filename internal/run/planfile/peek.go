package planfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/yamltree"
)

// Named is what a plan names before its kind is known: the code of the kind may have to be loaded first.
type Named struct {
	// Kind is the kind, and Place says where it is named: plan.yaml:1:7: kind. Empty: the plan names none.
	Kind, Place string
	// Keys are the environment variables that hold keys: those of the plan and of the presets.
	Keys []string

	report *report
	root   *yamltree.Node
}

// At says where the plan has a key: plan.yaml:8:8: params.env. If it has none, it names the file and the key.
func (n Named) At(key ...string) string {
	if n.report == nil {
		return strings.Join(key, ".")
	}
	node := n.root
	for _, step := range key {
		if found := node.Field(step); found != nil {
			node = found
		}
	}
	return n.report.Place(node.At, yamltree.Path(key))
}

// Names lists the keys of the mapping under a key, in the order of the file.
func (n Named) Names(key ...string) []string {
	var all []string
	if n.root.Has(key) {
		for _, f := range n.root.Find(key).Fields {
			all = append(all, f.Name)
		}
	}
	return all
}

// Plays returns what the plan that the params of this one name names, if there is one, and its file; empty: it is recorded. dir is
// the folder of this plan.
func (n Named) Plays(ctx context.Context, dir string) (inner Named, file string) {
	if n.root == nil {
		return Named{}, ""
	}
	params := n.root.Field("params")
	if recorded := params.Field("nested").Field("plan"); recorded != nil {
		return named(n.report, recorded), ""
	}
	if play := params.Field("play"); play != nil && play.Form == yamltree.Text && play.Text != "" {
		file = filepath.Join(dir, filepath.FromSlash(play.Text))
		return Peek(ctx, file), file
	}
	return Named{}, ""
}

// Digest returns a digest of the values under keys. Comments, the way in which a value is written and the order of mappings do
// not count.
func (n Named) Digest(keys ...string) string {
	h := sha256.New()
	for _, k := range keys {
		fmt.Fprintf(h, "%q:", k)
		writeNode(h, n.root.Field(k))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// writeNode writes a value such that different values differ.
func writeNode(to io.Writer, n *yamltree.Node) {
	if n == nil {
		return
	}
	fmt.Fprintf(to, "%d%q%t[", n.Form, n.Text, n.Flag)
	for _, item := range n.Items {
		writeNode(to, item)
	}
	fields := slices.SortedStableFunc(slices.Values(n.Fields), func(a, b yamltree.Field) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range fields {
		fmt.Fprintf(to, "%q:", f.Name)
		writeNode(to, f.Value)
	}
	fmt.Fprint(to, "]")
}

// Peek reads what a plan file names. It reports no errors: Load does.
func Peek(ctx context.Context, path string) Named {
	b, err := readFile(context.WithoutCancel(ctx), path, "plan file", MaxSize) // it is small
	if err != nil {
		return Named{}
	}
	rep := newPlanReport(path, b)
	if rep.Err() != nil {
		return Named{}
	}
	return named(rep, parseYAML(rep))
}

// PeekJSON is Peek for a recorded plan.
func PeekJSON(recorded json.RawMessage) Named {
	root, err := yamltree.ParseJSON(recorded)
	if err != nil {
		return Named{}
	}
	return named(&report{Source: &source{Name: "recorded plan", Recorded: true}}, root)
}

func named(rep *report, root *yamltree.Node) (n Named) {
	for _, p := range provider.Presets() {
		if p.KeyEnv != "" {
			n.Keys = append(n.Keys, p.KeyEnv)
		}
	}
	if root == nil || root.Form != yamltree.Mapping {
		return n
	}
	n.report, n.root = rep, root
	if kind := root.Field("kind"); kind != nil && kind.Form == yamltree.Text {
		n.Kind, n.Place = kind.Text, rep.Place(kind.At, yamltree.Path{"kind"})
	}
	if all := root.Field("providers"); all != nil && all.Form == yamltree.Mapping {
		for _, p := range all.Fields {
			if key := p.Value.Field("key_env"); key != nil && key.Form == yamltree.Text {
				n.Keys = append(n.Keys, key.Text)
			}
		}
	}
	return n
}
