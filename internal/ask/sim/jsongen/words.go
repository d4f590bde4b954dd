package jsongen

import "strings"

// Lexicon holds words, and templates for sentences. It may be used from several goroutines at once.
type Lexicon struct {
	sentences, aboutTopic, phrases, nouns, adjectives, verbs, adverbials, openers, names []string
}

// New returns the Lexicon.
func New() *Lexicon {
	return &Lexicon{
		sentences: sentences(), aboutTopic: aboutTopic(), phrases: phrases(), nouns: nouns(), adjectives: adjectives(),
		verbs: verbs(), adverbials: adverbials(), openers: openers(), names: names(),
	}
}

// sentences returns templates: see fill for the capital letters.
func sentences() []string {
	return []string{
		"O the N is A D.",
		"we should V the N before the N.",
		"O it is better to V the N than to V the N.",
		"the A N and the A N will V each other D.",
		"nobody can V a N D, and that is why the N matters.",
		"if we V the N, the N will V us D.",
		"P said that the N is A, and the N agrees.",
		"my N is A enough to V the N D.",
		"O let us V the N D and see what the N does.",
		"there is a A N behind every A N.",
		"a A N needs a N that can V it.",
		"you could V the N, but then the N stays A.",
		"what I want is a A N, not a A N.",
		"the N was A D; now it is A.",
		"O P will V the N if the N stays A.",
		"every N that we V makes the next N more A.",
	}
}

// aboutTopic returns templates of sentences that mention a topic.
func aboutTopic() []string {
	return []string{
		"O as for T, the N is A D.",
		"you mention T, and I think the N should V it D.",
		"on T: we should V the N before the N.",
		"when I think of T, a A N comes to mind.",
		"T is where the N and the N meet D.",
		"to speak of T, I would V the N first.",
		"about T I am A, but the N is A.",
		"T matters more than the A N, so let us V it D.",
	}
}

// phrases returns templates without a full stop.
func phrases() []string {
	return []string{
		"the A N", "a N to V", "V the N D", "A and A", "N by N", "the N of the N", "how to V a A N",
		"a A N for P",
	}
}

func nouns() []string {
	return strings.Fields(`harbour plan river market offer promise border bridge season letter proposal reason answer pattern signal
		garden engine treaty number question winter story method balance journey council mountain lantern choice
		bargain harvest map compass supply rumour archive ladder measure window circle village fleet forest ledger
		message partner risk garrison workshop problem result detail exchange`)
}

func adjectives() []string {
	return strings.Fields(`careful quiet bright stubborn useful honest narrow patient bold simple fair ready rare steady sharp gentle
		certain hidden open costly sound modest early distant common curious strong fragile plain generous uneasy
		welcome`)
}

func verbs() []string {
	return strings.Fields(`support follow trade build measure question protect share change hold trust reach test carry repair open cross
		join weigh keep leave study defend offer choose watch name balance`)
}

func adverbials() []string {
	return []string{
		"for now", "this season", "by tomorrow", "without delay", "in the end", "as before",
		"at a fair price", "with some care", "under these terms", "on both sides", "after the talks",
		"once more", "in plain words", "by a small margin", "against the odds", "until spring",
	}
}

func openers() []string {
	return []string{
		"I think", "to my mind", "in short,", "even so,", "as I see it,", "for my part,", "clearly,",
		"perhaps", "on balance,", "to be fair,", "still,", "frankly,",
	}
}

func names() []string {
	return strings.Fields(`Ada Bruno Chidi Dana Emil Farah Goran Hana Ines Jonas Kira Lars Mina Noor Otto Priya Quentin Rosa Sami Tove
		Umar Vera Wen Xenia Yusuf Zora`)
}
