package scenario

// Dealt is which scenario it is. What a plan sets in it is what is compared, and luck is
// chance's.
func (definition) Dealt(p *Params) (what string, whole bool) {
	s, err := p.script()
	if err != nil {
		return "", false
	}
	return s.Name, false
}
