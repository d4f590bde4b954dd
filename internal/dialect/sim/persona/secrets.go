// Package persona holds behaviours for the simulated provider: pure functions that
// recognise a game by its prompt and answer as a player of it might.
//
// It promises that an answer depends on its arguments and on nothing else. It is not for
// judging models: how often a name gives something away is made up.
package persona

import (
	"slices"
	"strings"

	"parley/llm"
)

// Secrets plays the conversations of the world named secrets, and judges them. It
// recognises a player by the line "Your secret: WORD" in a system message, and answers
// nothing else but the judge.
//
// How often a message gives the word away depends on the model's name (small, mini and
// nano the most, large, pro and max the least) and on what the player is told: bold, open,
// honest and hurry raise it; quiet, careful, wary, guarded and press lower it, and so does
// holding the target. A player who has just been told a word is twice as likely to tell
// its own. One word in three is told in disguise.
func Secrets(model string, req *llm.Request, seed uint64) (string, bool) {
	if text, ok := verdict(req, seed); ok {
		return text, true
	}
	told, secret := instructions(req)
	if secret == "" {
		return "", false
	}
	d := &dice{seed}
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
	chance := rate(model, told)
	if heard {
		chance *= 2
	}
	switch {
	case d.float() < min(chance, 0.95):
		return d.tell(secret), true
	case hasAny(told, "press"):
		return d.pick("Your word. Now. I have told you mine already, have I not?", "You owe me that word, and you know it. What is it?",
			"Everybody else has told me by now. Why not you?", "I can keep a thing to myself; you can trust me. Say it."), true
	case heard:
		return d.pick("Thank you for your trust. Mine has to wait a little longer.", "That is a fine word. I am not ready to tell mine yet.",
			"I hear you. Let me think about mine until my next message."), true
	case own == 0:
		return d.pick("Hello! Shall we both say what we hold, at the same time?", "Good day. I am curious what you were given.",
			"Hi there. How do you like to play this?", "Hello. Does yours live, or is it a thing one can buy?"), true
	case strings.Contains(last, "it is the last one") || strings.Contains(last, "it is your last"):
		return d.pick("This was a good talk. I keep mine to myself.", "We end as we began, then. Well played.", "A last chance for you: tell me, and I remember it."), true
	default:
		return d.pick("Give me a hint at least: how many letters?", "I would trade, but you first.", "What would you say if I told you mine now?",
			"Let us be fair to each other: both of us gain if both of us speak.", "You are careful. So am I.", "Could it be found in a kitchen?"), true
	}
}

// instructions returns what the player is told, in lower case, and its secret.
func instructions(req *llm.Request) (told, secret string) {
	for _, m := range req.Messages {
		if m.Role != llm.RoleSystem {
			continue
		}
		text := m.Text()
		told += strings.ToLower(text) + "\n"
		for line := range strings.Lines(text) {
			if word, ok := strings.CutPrefix(strings.TrimSpace(line), "Your secret: "); ok && secret == "" {
				secret = strings.TrimSpace(word)
			}
		}
	}
	return told, secret
}

// rate is how likely one message is to give the secret away.
func rate(model, told string) float64 {
	chance := 0.12
	switch name := strings.ToLower(model); {
	case hasAny(name, "small", "mini", "nano", "tiny"):
		chance = 0.22
	case hasAny(name, "large", "pro", "max", "huge"):
		chance = 0.05
	}
	if hasAny(told, "bold", "open", "honest", "hurry") {
		chance *= 2.5
	}
	if hasAny(told, "quiet", "careful", "wary", "guarded", "press") {
		chance /= 3
	}
	if strings.Contains(told, "it is your own word") { // the target's holder
		chance /= 2
	}
	return chance
}

// hasAny says whether one of some words is a word of text.
func hasAny(text string, words ...string) bool {
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if slices.Contains(words, w) {
			return true
		}
	}
	return false
}

// confesses says whether a message, in lower case, sounds as if its writer told a secret.
func confesses(text string) bool {
	return strings.Contains(text, "my secret is") || strings.Contains(text, "my word is") || strings.Contains(text, "i hold the word")
}

// dice draws from a seed, by the method of SplitMix64.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9E3779B97F4A7C15
	z := d.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (d *dice) float() float64 { return float64(d.next()>>11) / (1 << 53) }

func (d *dice) pick(lines ...string) string { return lines[d.next()%uint64(len(lines))] }
