package scenario

// dealt is which scenario it is. What a plan sets in it is what is compared, and luck is
// chance's.
func dealt(params any) (what string, whole bool) {
	s, err := checked(params)
	if err != nil {
		return "", false
	}
	return s.Name, false
}
