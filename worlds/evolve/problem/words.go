package problem

import "strings"

// setting is where a story takes place.
type setting struct{ place, thing string }

func settings() []setting {
	return []setting{
		{"bakery", "loaves"}, {"harbour", "crates"}, {"library", "books"}, {"nursery", "seedlings"}, {"workshop", "chairs"},
		{"pottery", "bowls"}, {"kitchen", "jars"}, {"orchard", "baskets"}, {"theatre", "masks"}, {"printing house", "posters"},
		{"museum", "coins"}, {"school", "notebooks"}, {"farm", "eggs"}, {"dairy", "cheeses"}, {"depot", "tyres"}, {"garden", "bulbs"},
	}
}

// operation is something that happens to the things. It is known by words that are in each
// of its sentences, and in no other.
type operation string

const (
	add   operation = "more"
	take  operation = "of them"
	times operation = "times as many"
	share operation = "equal shares"
)

// operations lists all operations. The first is always possible.
func operations() []operation { return []operation{add, take, times, share} }

// sentences returns the sentences of an operation.
func (o operation) sentences() []string {
	switch o {
	case take:
		return []string{"Then NUMBER of them are sold.", "In the rain NUMBER of them are lost.", "The owner gives NUMBER of them away.", "A neighbour borrows NUMBER of them."}
	case times:
		return []string{"A large delivery makes it NUMBER times as many.", "After an exchange there are NUMBER times as many THING."}
	case share:
		return []string{"They are put into NUMBER equal shares, and only one share stays.", "The stock is split into NUMBER equal shares; all but one share leave."}
	}
	return []string{"A cart brings NUMBER more.", "By noon NUMBER more THING arrive.", "The PLACE buys NUMBER more THING.", "Somebody finds NUMBER more in the cellar."}
}

// apply returns the number of things after an operation.
func (o operation) apply(have, n int) int {
	switch o {
	case take:
		return max(0, have-n)
	case times:
		return have * n
	case share:
		return have / max(1, n)
	}
	return have + n
}

// asides hold numbers that do not count.
func asides() []string {
	return []string{
		"The PLACE was founded NUMBER years ago.", "It is NUMBER degrees outside.", "A visitor walks NUMBER minutes to get there.", "The door has number NUMBER.",
	}
}

// operationOf returns the operation of a sentence.
func operationOf(sentence string) (operation, bool) {
	for _, op := range operations() {
		if strings.Contains(sentence, string(op)) {
			return op, true
		}
	}
	return "", false
}
