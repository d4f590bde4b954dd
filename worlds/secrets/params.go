package secrets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Params are what a plan file can say about a game.
type Params struct {
	// Mode is how points are given. Default: standard, the only one so far.
	Mode string `json:"mode" doc:"How points are given." oneof:"standard"`
	// Messages is how many messages the conversation has in all, both players' together.
	// Default: 6.
	Messages int `json:"messages" doc:"How many messages the conversation has in all, both players' together: 2 to 200."`
	// Categories are where secrets are drawn from: see Categories. Default: all of them.
	Categories []string `json:"categories" doc:"The categories of words that secrets are drawn from."`
	// Words are what secrets are drawn from instead of the categories. Default: none.
	Words []string `json:"words" doc:"Words of your own to draw secrets from, instead of the categories."`
	// Persona is a text added to what a seat is told, by seat. Default: none.
	Persona map[string]string `json:"persona" doc:"A text added to what a seat is told, by seat: first, second."`
}

// The bounds of params.
const (
	minMessages = 2
	maxMessages = 200
	minWord     = 3 // letters: a shorter one is said by accident
	maxWord     = 40
	maxPersona  = 10_000
)

func defaults() *Params {
	return &Params{Mode: Standard, Messages: 6, Categories: Categories(), Words: []string{}, Persona: map[string]string{}}
}

// check says what is wrong with p, naming the param.
func (p *Params) check() error {
	if !slices.Contains(Modes(), p.Mode) {
		return fmt.Errorf("secrets: params.mode: %q is none: use %s", p.Mode, strings.Join(Modes(), ", "))
	}
	if p.Messages < minMessages || p.Messages > maxMessages {
		return fmt.Errorf("secrets: params.messages: %d: want %d to %d; it counts both players' together", p.Messages, minMessages, maxMessages)
	}
	for i, c := range p.Categories {
		if !slices.Contains(Categories(), c) {
			return fmt.Errorf("secrets: params.categories: %q is none: use %s", c, strings.Join(Categories(), ", "))
		}
		if slices.Contains(p.Categories[:i], c) {
			return fmt.Errorf("secrets: params.categories: %s is listed twice", c)
		}
	}
	if len(p.Categories) == 0 && len(p.Words) == 0 {
		return fmt.Errorf("secrets: params.categories: none, and no words either: use %s", strings.Join(Categories(), ", "))
	}
	for _, seat := range slices.Sorted(maps.Keys(p.Persona)) {
		if seat != First && seat != Second {
			return fmt.Errorf("secrets: params.persona.%s: is no seat: use %s or %s", seat, First, Second)
		}
		if text := p.Persona[seat]; len(text) > maxPersona || !utf8.ValidString(text) {
			return fmt.Errorf("secrets: params.persona.%s: want a text of at most %d bytes", seat, maxPersona)
		}
	}
	return p.checkWords()
}

func (p *Params) checkWords() error {
	if len(p.Words) == 1 {
		return fmt.Errorf("secrets: params.words: only %q: want two or more, one for each player", p.Words[0])
	}
	seen := map[string]string{}
	for _, w := range p.Words {
		parts := wordsOf(w)
		folded := strings.Join(parts, " ")
		n := utf8.RuneCountInString(strings.Join(parts, ""))
		switch {
		case n < minWord && !unspaced(folded) || n == 0:
			return fmt.Errorf("secrets: params.words: %q: want %d letters or more, or it is said by accident", w, minWord)
		case len(w) > maxWord:
			return fmt.Errorf("secrets: params.words: %.20q…: want at most %d bytes", w, maxWord)
		case strings.ContainsFunc(w, unicode.IsControl) || !utf8.ValidString(w):
			return fmt.Errorf("secrets: params.words: %q: want plain text on one line", w)
		case seen[folded] != "":
			return fmt.Errorf("secrets: params.words: %q and %q sound the same: want different ones", seen[folded], w)
		}
		seen[folded] = w
	}
	return nil
}

// words returns what secrets are drawn from.
func (p *Params) words() []string {
	if len(p.Words) > 0 {
		return p.Words
	}
	var all []string
	for _, c := range p.Categories {
		all = append(all, category(c)...)
	}
	return all
}
