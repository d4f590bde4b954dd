// Part standin plays the game of secrets for the simulated provider, and judges it.
//
// An answer depends only on the arguments of Play. How often a model's name gives its word away is made up.

package secrets

import (
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// Texts of the prompts by which the stand-in recognises a question.
const (
	// standinDealt is at the beginning of every player's instructions.
	standinDealt = "was dealt a word that only its owner knows."
	// yourSecret begins the line with the player's word.
	yourSecret = "Your secret: "
	// ownTarget is for the holder of the target.
	ownTarget = "It is your own word."
	// lastOfAll and OwnLast mark the last message of all, and the last of its writer.
	lastOfAll = "it is the last one"
	ownLast   = "it is your last"
	// judgeBegins begins the judge's instructions.
	judgeBegins = "You are the judge in a game of trust."
)

// playStandin plays the conversations of a game, and judges them. It recognises a player by Dealt or YourSecret in its
// instructions and the judge by JudgeBegins, and answers no other question. A player without its own word in the
// instructions cannot give it away.
//
// How often a message gives the word away depends on the model's name (small, mini and
// nano the most, large, pro and max the least) and on its instructions: bold, open,
// honest and hurry raise it; quiet, careful, wary, guarded and press lower it, and so does
// holding the target. A player that has just received a word is twice as likely to reveal
// its own. One word in three is in disguise.
func playStandin(model string, req *llm.Request, seed uint64) (string, bool) {
	if text, ok := standinVerdict(req, seed); ok {
		return text, true
	}
	text, secret := instructions(req)
	if secret == "" && !strings.Contains(text, standinDealt) || req.Schema != nil {
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
	chance := rate(model, text)
	if heard {
		chance *= 2
	}
	switch {
	case secret != "" && d.Float() < min(chance, 0.95):
		return tell(d, secret), true
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

// instructions returns the instructions in lower case, and the secret.
func instructions(req *llm.Request) (text, secret string) {
	text = worldsim.Instructions(req)
	for rest := text; secret == ""; {
		before, after, found := strings.Cut(rest, yourSecret)
		if !found {
			break
		}
		word, _, _ := strings.Cut(after, "\n")
		if strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) == "" {
			secret = strings.TrimSpace(word)
		}
		rest = after[len(word):]
	}
	return strings.ToLower(text), secret
}

// rate is how likely one message is to give the secret away.
func rate(model, text string) float64 {
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
