package diplomacy

import (
	"strings"

	"parley/worlds/diplomacy/rules"
)

// relation is how a power sees another, from enemy to ally.
type relation int

const (
	enemy relation = iota - 2
	unfriendly
	neutral
	friendly
	ally
)

// labels lists the relations, from enemy to ally.
func labels() []string { return []string{"enemy", "unfriendly", "neutral", "friendly", "ally"} }

func (r relation) String() string { return labels()[min(max(r, enemy), ally)-enemy] }

// parseRelation reads a label in any case.
func parseRelation(label string) (relation, bool) {
	for i, l := range labels() {
		if strings.EqualFold(strings.TrimSpace(label), l) {
			return relation(i) + enemy, true
		}
	}
	return neutral, false
}

// relations are those of one power to the others.
type relations [rules.Turkey + 1]relation

// text lists the relations to powers other than w that are still there.
func (r *relations) text(w rules.Power, present rules.Set[rules.Power]) string {
	var parts []string
	for _, other := range rules.Powers() {
		if other != w && present.Has(other) {
			parts = append(parts, other.Name()+" "+r[other].String())
		}
	}
	return strings.Join(parts, ", ")
}

// record writes them by name.
func (r *relations) record(w rules.Power) map[string]string {
	m := map[string]string{}
	for _, other := range rules.Powers() {
		if other != w {
			m[other.String()] = r[other].String()
		}
	}
	return m
}
