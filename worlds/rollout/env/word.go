package env

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/worlds/rollout/rules"
)

// wordParams are its params.
type wordParams struct {
	Guesses int    `json:"guesses"`
	Word    string `json:"word"` // to be found; empty: drawn
}

// word hides a word of five letters and marks the letters of each guess. Finding the word earns 1.
type word struct {
	wordParams
	conversation
	hidden  string
	guessed int
}

func newWord(params json.RawMessage) (Env, error) {
	p := wordParams{Guesses: 6}
	err := readParams("word", params, &p, bound{"guesses", &p.Guesses, 1, 100})
	if err == nil && p.Word != "" && !fiveLetters.MatchString(p.Word) {
		err = fmt.Errorf("env: word: params.word: %.40q: want five letters from a to z", p.Word)
	}
	return &word{wordParams: p}, err
}

var (
	fiveLetters = regexp.MustCompile(`^[a-z]{5}$`)
	guessRE     = regexp.MustCompile(`(?i)\b[a-z]{5}\b`)
)

func (w *word) Reset(seed int64) {
	w.guessed = 0
	if w.hidden = w.Word; w.hidden == "" {
		words := hiddenWords()
		w.hidden = words[newRand(seed).IntN(len(words))]
	}
	w.conversation = newConversation("Find a hidden word of five letters. Of each guess you are told letter by letter: "+
		"+ it is right, ? it is elsewhere in the word, - it is not in the word. The last word of five letters that you write is your guess.",
		fmt.Sprintf("You have %d guesses. Your first?", w.Guesses))
}

func (w *word) Step(action rules.Action) rules.Result {
	if w.done {
		return result(0, true, false)
	}
	text := onlyText(action)
	w.guessed++
	said, found := "That holds no word of five letters.", false
	if all := guessRE.FindAllString(text, -1); len(all) > 0 {
		g := strings.ToLower(all[len(all)-1])
		said, found = g+": "+WordHint(w.hidden, g), g == w.hidden
	}
	w.done = found || w.guessed == w.Guesses
	if !w.done {
		w.answered(text, fmt.Sprintf("%s. You have %d guesses left.", said, w.Guesses-w.guessed))
	}
	if found {
		return result(1, true, false)
	}
	return result(0, w.done, false)
}

// WordHint compares a guess with the hidden word: + is right, ? is elsewhere, - is not in the word. It marks a letter as elsewhere no more often than it occurs.
func WordHint(hidden, guess string) string {
	out := []byte("-----")
	left := map[byte]int{}
	for i := range len(hidden) {
		if hidden[i] == guess[i] {
			out[i] = '+'
		} else {
			left[hidden[i]]++
		}
	}
	for i := range len(hidden) {
		if c := guess[i]; out[i] == '-' && left[c] > 0 {
			left[c]--
			out[i] = '?'
		}
	}
	return string(out)
}

// hiddenWords returns the words to draw from.
func hiddenWords() []string {
	return strings.Fields(`
		apple beach bread brick bring chair chalk cheek cloud coast crane crown dance dream drift eagle early earth
		fable field flame floor frost fruit giant glass grape grass green happy heart horse house hurry index ivory
		jolly judge juice knife known labor laugh lemon light limit maple march metal money month mouse music night
		noble north ocean olive order paint paper peach piano plant plate pride queen quick quiet radio raven river
		robin round salad scale shape sheep shine shore skirt sleep smile snake south space spice spoon stage stone
		storm sugar table teach tiger toast today tower train trust uncle under union value video visit voice watch
		water wheel white world young youth zebra`)
}
