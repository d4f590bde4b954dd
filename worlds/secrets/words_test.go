package secrets

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/worlds/secrets/reveal"
)

// promptTexts returns the lines of all prompts of players in games with different params, without
// the secrets.
func promptTexts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	seen := map[string]bool{}
	for _, params := range []string{
		`{}`, `{"persona": {"first": "aggressive"}, "rounds": 2, "mode": "retained"}`, `{"players": 3, "rounds": 3, "mode": "diversity"}`,
		`{"players": 5, "rounds": 4, "mode": "targeted", "judge": "decide"}`, `{"players": 4, "rounds": 3, "target_known": "nobody", "mode": "targeted"}`,
	} {
		p := drive(t, params, 0, func(p *played, _ world.Call) world.Reply {
			if len(p.calls)%4 == 0 {
				return failed()
			}
			return botReply("…")
		})
		for _, c := range p.calls {
			for _, m := range c.Ask.Messages {
				text := strings.ReplaceAll(m.Text(), "Your secret: "+p.secrets[c.Seat], "Your secret:")
				for line := range strings.Lines(text) {
					if c.Seat != judgeSeat && !seen[line] {
						seen[line] = true
						b.WriteString(line + "\n")
					}
				}
			}
		}
	}
	return b.String()
}

// TestWordsAreFair checks that every word is in one category and can be found, and that neither the
// prompts nor the other words give it away.
func TestWordsAreFair(t *testing.T) {
	t.Parallel()
	prompts := reveal.Read(promptTexts(t))
	seen := map[string]string{}
	for _, name := range wordCategories() {
		own, others := strings.Fields(wordsIn(name)), []string{}
		for _, other := range wordCategories() {
			if other != name {
				others = append(others, strings.Fields(wordsIn(other))...)
			}
		}
		elsewhere := reveal.Read(strings.Join(others, ", "))
		if len(own) < 24 {
			t.Errorf("%s has %d words", name, len(own))
		}
		for i, w := range own {
			if seen[w] != "" {
				t.Errorf("%s is in %s and %s", w, seen[w], name)
			}
			seen[w] = name
			if reveal.NewSecret(w).Listen().Hear(reveal.Read("It is "+w+".")) != reveal.Said {
				t.Errorf("%s cannot be found", w)
			}
			beside := reveal.Read(strings.Join(slices.Concat(own[:i], own[i+1:]), ", "))
			for what, m := range map[string]*reveal.Message{"the prompts": prompts, "other words": elsewhere, "words of its category": beside} {
				if f := reveal.NewSecret(w).Listen().Hear(m); f != "" {
					t.Errorf("%s is given away by %s: %s", w, what, f)
				}
			}
		}
	}
	if wordsIn("none") != "" {
		t.Error("an unknown category has words")
	}
}

// TestDeals checks that deals have different secrets, and that only the deal decides them.
func TestDeals(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for deal := range 700 {
		one := drive(t, `{"messages": 1}`, deal, func(*played, world.Call) world.Reply { return botReply("Hello.") })
		if deal < 20 {
			two := drive(t, `{"messages": 2, "rounds": 2, "mode": "targeted"}`, deal, func(*played, world.Call) world.Reply { return failed() })
			if !reflect.DeepEqual(one.record.Secrets, two.record.Secrets) {
				t.Fatalf("deal %d has the secrets %v and %v", deal, one.record.Secrets, two.record.Secrets)
			}
		}
		a, b := one.record.Secrets[firstSeat], one.record.Secrets[secondSeat]
		if a == b {
			t.Errorf("deal %d: both players hold %s", deal, a)
		}
		seen[a]++
		seen[b]++
	}
	if all := len((definition{}).Defaults().pool()); len(seen) < all*95/100 {
		t.Errorf("only %d of %d words were dealt", len(seen), all)
	}
	own := script(t, `{"words": ["left", "right"]}`, 0, func(int, string, string) world.Reply { return botReply("Hello.") })
	if got := own.secrets[firstSeat] + " " + own.secrets[secondSeat]; got != "left right" && got != "right left" {
		t.Errorf("dealt %s, want the words left and right", got)
	}
	targets := map[string]int{}
	for deal := range 60 {
		p := drive(t, `{"mode": "targeted", "players": 3, "messages": 1}`, deal, func(*played, world.Call) world.Reply { return failed() })
		targets[p.record.Target]++
	}
	if len(targets) != 3 {
		t.Errorf("targets %v, want all 3 players among them", targets)
	}
}
