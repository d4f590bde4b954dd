package rollout

import (
	"regexp"
	"strings"

	"parley/worlds/rollout/env"
)

var clueRE = regexp.MustCompile(`^([a-z]{5}): ([-+?]{5})\.`)

// clue is what is known of a guess.
type clue struct{ guess, marks string }

// guess returns a word that fits every clue, or any word.
func (t *turn) guess() (string, bool) {
	if t.asked() == "" {
		return "", false
	}
	var clues []clue
	for _, text := range t.heard {
		if m := clueRE.FindStringSubmatch(text); m != nil {
			clues = append(clues, clue{m[1], m[2]})
		}
	}
	words := vocabulary()
	word := t.pick(words...)
	if !t.fails(t.skill) {
		// It considers only some of the words.
		for range int(200 * t.skill) {
			if agrees(word, clues) {
				break
			}
			word = t.pick(words...)
		}
	}
	return t.pick("", "I say ", "It may be ", "My guess: ") + word, true
}

func agrees(word string, clues []clue) bool {
	for _, c := range clues {
		if env.Hint(word, c.guess) != c.marks {
			return false
		}
	}
	return true
}

// vocabulary returns the words it knows.
func vocabulary() []string {
	return strings.Fields(`
		about above actor adult after again agent agree alarm album alert alone angel anger angle apple apron arrow
		badge beach beard berry birth black blade blame blind block blood board bread brick bride bring broad brown
		brush cabin cable candy carry chain chair chalk chase cheek chess chest child clean clear climb clock cloth
		cloud coach coast color couch cover crane cream crown curve dance dozen drama dream dress drift drink drive
		eagle early earth elbow empty enjoy enter fable faith fancy fence fever field flame flock floor flour forty
		frame fresh frost fruit funny ghost giant glass glove grain grape grass great green guest happy heart heavy
		honey horse hotel house human hurry index ivory jelly jewel jolly judge juice knife known label labor large
		laugh layer lemon level light limit linen lunch magic maple march match medal melon mercy metal minor money
		month motor mouse mouth music nerve never night noble noise north novel nurse ocean olive onion order organ
		paint panel paper party peach pearl piano pilot plain plant plate point pride prize queen quick quiet radio
		ranch raven reach rider right river roast robin rough round royal salad sauce scale scarf shade shape sharp
		sheep shelf shine shirt shore short skill skirt sleep smile smoke snake solid south space spice spoon stage
		stair steam stone storm story straw sugar sweet table taste teach thing thumb tiger title toast today tooth
		tower trade train trust truth uncle under union upper value video visit voice wagon watch water wheat wheel
		white woman world worry wrist young youth zebra`)
}
