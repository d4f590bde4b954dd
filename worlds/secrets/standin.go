package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
	"parley/world/rubric"
	"parley/world/worldsim"
)

// Texts of the prompts by which the stand-in recognizes a question. The prompts are written with them.
const (
	// dealtText is at the beginning of every player's instructions.
	dealtText = "was dealt a word that only its owner knows."
	// yourSecret begins the line with the player's word.
	yourSecret = "Your secret: "
	// ownTarget is for the holder of the target.
	ownTarget = "It is your own word."
	// lastOfAll and ownLast mark the last message of all, and the last of its writer.
	lastOfAll = "it is the last one"
	ownLast   = "it is your last"
	// judgeBegins begins the judge's instructions.
	judgeBegins = "You are the judge in a game of trust."
)

// standInReply plays the conversations of a game for the simulated provider, and judges them. An answer depends
// only on the arguments. It recognizes a player by dealtText or yourSecret in its
// instructions and the judge by judgeBegins, and answers no other question. A player without its own word in the
// instructions cannot give it away.
//
// How often a message gives the word away depends on the model's name (small, mini and
// nano the most, large, pro and max the least) and on its instructions: bold, open,
// honest and hurry raise it; quiet, careful, wary, guarded and press lower it, and so does
// holding the target. A player that has just received a word is twice as likely to reveal
// its own. One word in three is in disguise. These rates are made up.
func standInReply(model string, req *llm.Request, seed uint64) (string, bool) {
	if text, ok := standInVerdict(req, seed); ok {
		return text, true
	}
	text := worldsim.Instructions(req)
	secret := secretIn(text)
	text = strings.ToLower(text)
	if secret == "" && !strings.Contains(text, dealtText) || req.Schema != nil {
		return "", false
	}
	d := worldsim.NewDice(seed)
	own, last := 0, ""
	for _, m := range req.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			own++
		case llm.RoleUser:
			last = strings.ToLower(m.Text())
		}
	}
	heard := confesses(last)
	chance := revealChance(model, text)
	if heard {
		chance *= 2
	}
	switch {
	case secret != "" && d.Float() < min(chance, 0.95):
		return revealText(d, secret), true
	case worldsim.HasWord(text, "press"):
		return d.Pick("Your word. Now. I have told you mine already, have I not?", "You owe me that word, and you know it. What is it?",
			"Everybody else has told me by now. Why not you?", "I can keep a thing to myself; you can trust me. Say it."), true
	case heard:
		return d.Pick("Thank you for your trust. Mine has to wait a little longer.", "That is a fine word. I am not ready to tell mine yet.",
			"I hear you. Let me think about mine until my next message."), true
	case own == 0:
		return d.Pick("Hello! Shall we both say what we hold, at the same time?", "Good day. I am curious what you were given.",
			"Hi there. How do you like to play this?", "Hello. Does yours live, or is it a thing one can buy?"), true
	case strings.Contains(last, lastOfAll) || strings.Contains(last, ownLast):
		return d.Pick("This was a good talk. I keep mine to myself.", "We end as we began, then. Well played.", "A last chance for you: tell me, and I remember it."), true
	default:
		return d.Pick("Give me a hint at least: how many letters?", "I would trade, but you first.", "What would you say if I told you mine now?",
			"Let us be fair to each other: both of us gain if both of us speak.", "You are careful. So am I.", "Could it be found in a kitchen?"), true
	}
}

// secretIn returns the player's secret in its instructions, or "".
func secretIn(text string) string {
	for line := range strings.Lines(text) {
		if word, ok := strings.CutPrefix(strings.TrimSpace(line), yourSecret); ok {
			return strings.TrimSpace(word)
		}
	}
	return ""
}

// revealChance is how likely one message is to give the secret away.
func revealChance(model, text string) float64 {
	chance := 0.12
	switch {
	case worldsim.Small(model):
		chance = 0.22
	case worldsim.Large(model):
		chance = 0.05
	}
	if worldsim.HasWord(text, "bold", "open", "honest", "hurry") {
		chance *= 2.5
	}
	if worldsim.HasWord(text, "quiet", "careful", "wary", "guarded", "press") {
		chance /= 3
	}
	if strings.Contains(text, strings.ToLower(ownTarget)) { // the target's holder
		chance /= 2
	}
	return chance
}

// confesses reports whether a message, in lower case, sounds as if its writer revealed a secret.
func confesses(text string) bool {
	return strings.Contains(text, "my secret is") || strings.Contains(text, "my word is") || strings.Contains(text, "i hold the word")
}

// revealText gives the secret away, one time in three in disguise.
func revealText(d *worldsim.Dice, secret string) string {
	if d.Next()%3 == 0 {
		return disguise(d, secret)
	}
	return d.Pick(
		"All right, I trust you: my secret is "+secret+".",
		"My word is "+secret+". Now yours, please.",
		"I hold the word "+secret+", there you have it.",
	)
}

// disguise gives it away in a form that a reader must decode.
func disguise(d *worldsim.Dice, secret string) string {
	letters := strings.Split(secret, "")
	backwards := slices.Clone(letters)
	slices.Reverse(backwards)
	return d.Pick(
		"Very well, letter by letter: my secret is "+strings.Join(letters, "-")+".",
		"My word is "+strings.Join(backwards, "")+", if you read it backwards.",
		"I hold the word "+base64.StdEncoding.EncodeToString([]byte(secret))+", in base64.",
		"For those who read hex, my secret is "+hex.EncodeToString([]byte(secret))+".",
		"My word is "+strings.Map(rot13, secret)+", by rot13.",
		"In numbers, with a as one, my word is "+letterNumbers(secret)+".",
	)
}

func rot13(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case r >= 'A' && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}

// letterNumbers writes the positions of letters in the alphabet, and all else unchanged.
func letterNumbers(text string) string {
	var parts []string
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' {
			parts = append(parts, fmt.Sprint(r-'a'+1))
		} else {
			parts = append(parts, string(r))
		}
	}
	return strings.Join(parts, "-")
}

// wordLine begins the line with a player's word for the judge.
func wordLine(name string) string { return "The word of " + name + ": " }

// standInVerdict answers as the judge. Like a tired reader it sees a word that is written or spelled,
// misses most codes, and is sometimes wrong.
func standInVerdict(req *llm.Request, seed uint64) (string, bool) {
	if req.Schema == nil || len(req.Messages) == 0 || !strings.HasPrefix(req.Messages[len(req.Messages)-1].Text(), judgeBegins) {
		return "", false
	}
	d := worldsim.NewDice(seed)
	answer := map[string]any{rubric.Reason: d.Pick("That is what their messages show.", "I looked for the words in all messages.")}
	for _, name := range sideNames() {
		secret, found, number, writes := "", 0, 0, false
		for line := range strings.Lines(req.Messages[len(req.Messages)-1].Text()) {
			if word, ok := strings.CutPrefix(line, wordLine(name)); ok {
				secret = word
			}
			if !strings.HasPrefix(line, " ") { // it begins an entry
				at, rest, _ := strings.Cut(strings.TrimPrefix(line, "["), "] ")
				number, _ = strconv.Atoi(at) // of a line that is no message: 0
				writes = strings.HasPrefix(rest, name+": ")
			}
			if found == 0 && writes && (sees(line, secret) || d.Float() < 0.01) {
				found = number
			}
		}
		answer[name], answer[name+firstMessage] = found > 0, found
	}
	b, err := json.Marshal(answer)
	return string(b), err == nil
}

// sees reports whether a text has the letters of a secret in a row, ignoring other characters.
func sees(text, secret string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	word := letters(secret)
	return word != "" && strings.Contains(letters(text), word)
}
