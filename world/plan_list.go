package world

// List is the plan that plays its specs, all in one stage.
type List []Spec

// Next returns the list, once.
func (l List) Next(last []Played) []Spec {
	if len(last) > 0 {
		return nil
	}
	return l
}

// Repeat returns n specs like s that differ in their deal only: 0 and up.
func Repeat(s Spec, n int) List {
	l := make(List, 0, max(0, n))
	for i := range n {
		l = append(l, s.dealt(i))
	}
	return l
}

// dealt returns s with another deal. Both have the same lineup: a million specs need it once.
func (s Spec) dealt(deal int) Spec {
	s.Deal = deal
	return s
}
