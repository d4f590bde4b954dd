package rules

import "strings"

// Power is one of the seven powers.
type Power uint8

// The powers, in the order of all lists. None is no power.
const (
	None Power = iota
	Austria
	England
	France
	Germany
	Italy
	Russia
	Turkey
)

// Powers returns the seven powers.
func Powers() []Power {
	return []Power{Austria, England, France, Germany, Italy, Russia, Turkey}
}

// PowerNames returns the names of the powers as game files write them, which are also their
// seats.
func PowerNames() []string {
	return []string{"AUSTRIA", "ENGLAND", "FRANCE", "GERMANY", "ITALY", "RUSSIA", "TURKEY"}
}

// Name returns the power's name: France.
func (w Power) Name() string {
	return [...]string{"", "Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey", "?"}[min(w, Turkey+1)]
}

// String returns the power's name as game files write it: FRANCE.
func (w Power) String() string { return strings.ToUpper(w.Name()) }

// ParsePower reads the name of a power in any case, its adjective, or a common misspelling.
func ParsePower(name string) (Power, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, w := range Powers() {
		if strings.EqualFold(name, w.Name()) {
			return w, true
		}
	}
	switch name {
	case "austrian", "austria-hungary", "austro-hungarian":
		return Austria, true
	case "english", "british", "britain", "great britain", "uk", "brit":
		return England, true
	case "french":
		return France, true
	case "german", "egmany":
		return Germany, true
	case "italian":
		return Italy, true
	case "russian":
		return Russia, true
	case "turkish", "ottoman":
		return Turkey, true
	}
	return None, false
}
