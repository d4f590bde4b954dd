package planfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
)

// providers decodes the providers of the plan file over the presets of the same names, and checks them.
func (r *resolver) providers() {
	r.plan.Places = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.file.Providers)) {
		here := yamltree.Path{"providers", name}
		p, _ := provider.Lookup(name)
		if err := json.Unmarshal(r.file.Providers[name], &p); err != nil {
			r.Complain(here, "cannot be decoded: %v", err)
			continue
		}
		p.Name = name
		r.ownKey(here, &p)
		if len(p.BaseURLs) > 0 && !r.Tree.Has(here.To("base_url")) {
			p.BaseURL = "" // the preset's server is not one of them
			if !r.Tree.Has(here.To("batch")) {
				p.Batch = nil
			}
		}
		r.provider(p)
		// An error about the provider as a whole hides those about its fields.
		if key := here.String(); slices.ContainsFunc(r.Errs, func(e *Error) bool { return e.Key == key }) {
			r.Errs = slices.DeleteFunc(r.Errs, func(e *Error) bool { return strings.HasPrefix(e.Key, key+".") })
		}
		r.adviseVersion(p)
		r.plan.Providers = append(r.plan.Providers, p)
		r.plan.Places[name] = r.keyPlace(name)
	}
}

// ownKey removes what the preset says about the key, if the plan says it in another way.
func (r *resolver) ownKey(here yamltree.Path, p *provider.Provider) {
	has := func(key string) bool { return r.Tree.Has(here.To(key)) }
	variable, program, credentials := has("key_env"), has("key_command"), has("credentials")
	if !variable && (program || credentials) {
		p.KeyEnv = ""
	}
	if !program && (variable || credentials) {
		p.KeyCommand = nil
	}
	if !credentials && (variable || program) {
		p.Credentials = ""
	}
}

// keyPlace returns where a provider names its key, or its address.
func (r *resolver) keyPlace(name string) string {
	at := yamltree.Path{"providers", name}
	for _, key := range []string{"key_env", "key_command", "credentials", "base_url", "base_urls"} {
		if r.Tree.Has(at.To(key)) {
			at = at.To(key)
			break
		}
	}
	return r.Where(at)
}

// provider checks one provider.
func (r *resolver) provider(p provider.Provider) {
	here := yamltree.Path{"providers", p.Name}
	near := text.Nearest(p.Name, provider.PresetNames())
	if p.Dialect == "" && p.BaseURL == "" && len(p.BaseURLs) == 0 && near != "" {
		r.ComplainOfKey(here, "is not a preset; did you mean %s? a provider of your own needs dialect and base_url", near)
	}
	if bare := strings.Trim(p.KeyEnv, "${}"); bare != p.KeyEnv && isEnv(bare) {
		r.Complain(here.To("key_env"), "is the name of an environment variable alone: write %s", bare)
	} else if p.KeyEnv != "" && !isEnv(p.KeyEnv) {
		r.Complain(here.To("key_env"), "wants the name of an environment variable in capital letters, as LAB_KEY; this may be the key itself, which must not be in a plan file: put it into a variable")
	}
	for _, e := range p.Check() {
		at := slices.Concat(here, e.Path)
		switch e.Path[0] {
		case "name":
			r.ComplainOfKey(here, "the name %s", e.Problem)
		case "headers":
			r.ComplainOfKey(at, "%s", e.Problem)
		default:
			r.Complain(at, "%s", e.Problem)
		}
	}
}

// adviseVersion adds advice about base URLs that name no API version.
func (r *resolver) adviseVersion(p provider.Provider) {
	here := yamltree.Path{"providers", p.Name}
	at := map[string]yamltree.Path{p.BaseURL: here.To("base_url")}
	for i, u := range p.BaseURLs {
		at[u] = here.To("base_urls").To(yamltree.Index(i))
	}
	for _, u := range slices.Sorted(maps.Keys(at)) {
		if r.Tree.Has(at[u]) && provider.Unversioned(u) && p.APIVersion == "" && p.Dialect != "bedrock" {
			r.plan.Advice = append(r.plan.Advice, fmt.Sprintf("%s: the address names no API version: most servers answer at %s", r.Where(at[u]), oneLine(r.Source.Hide(strings.TrimRight(u, "/")+"/v1"), 200)))
		}
	}
}
