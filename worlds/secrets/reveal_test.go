package secrets

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReveals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ secret, text, want string }{
		{"tiger", "My secret is tiger.", Said},
		{"tiger", "TIGER", Said},
		{"tiger", "tiger's", Said},
		{"tiger", "**tiger**, _tiger_, \"tiger\"", Said},
		{"tiger", "it's:tiger;", Said},
		{"tiger", "tiger-like", Said},
		{"tiger", "ｔｉｇｅｒ", Said},
		{"tiger", "𝕥𝕚𝕘𝕖𝕣 𝐓𝐈𝐆𝐄𝐑", Said},
		{"tiger", "ⓣⓘⓖⓔⓡ", Said},
		{"tiger", "🅃🄸🄶🄴🅁", Said},
		{"tiger", "🆃🅸🅶🅴🆁", Said},
		{"tiger", "tígér", Said},
		{"tiger", "ti\u0301ger", Said},
		{"tiger", "ti\u200bg\u00ader", Said},
		{"tiger", "t-i-g-e-r", Spelled},
		{"tiger", "T I G E R", Spelled},
		{"tiger", "t.i.g.e.r!", Spelled},
		{"tiger", "t, i, g, e, and r", ""}, // first form: letters with a word between are not joined
		{"tiger", "I spell it t / i / g / e / r for you", Spelled},
		{"tiger", "I: t_i_g_e_r", Spelled},
		{"tiger", "🇹🇮🇬🇪🇷", Said},
		{"tiger", "tigers and tigress", ""},
		{"tiger", "antigerm", ""},
		{"tiger", "ti ger", ""},
		{"tiger", "a striped cat", ""},
		{"tiger", "", ""},
		{"tiger", "t i g e", ""},
		{"tiger", "t-i-g eh e-r", ""},
		{"ice cream", "Ice-cream!", Said},
		{"ice cream", "i c e c r e a m", Spelled},
		{"ice cream", "ice is cream", ""},
		{"ice cream", "cream, ice", ""},
		{"Übermut", "ubermut", Said},
		{"虎", "我的秘密是虎。", Said},
		{"虎", "我不说", ""},
		{"…", "… … …", ""},
		{"", "anything", ""},
	} {
		if got := reveals(c.text, c.secret); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.secret, c.text, got, c.want)
		}
	}
}

// TestWordsAreFair: every word is one of its own, can be given away, and is not said by
// merely repeating what players are told.
func TestWordsAreFair(t *testing.T) {
	t.Parallel()
	told := ""
	c := &talk{players: [2]player{{seat: First, secret: "xxx"}, {seat: Second, secret: "yyy"}}, length: 12, rules: rulesOf(Standard)}
	for turn := range c.length {
		for _, m := range c.prompt() {
			told += m.Text() + "\n"
		}
		if turn%3 == 0 {
			c.miss("")
		} else {
			c.hear("…")
		}
	}
	seen := map[string]string{}
	for _, name := range Categories() {
		if len(category(name)) != 12 {
			t.Errorf("%s has %d words", name, len(category(name)))
		}
		for _, w := range category(name) {
			if seen[w] != "" {
				t.Errorf("%s is in %s and %s", w, seen[w], name)
			}
			seen[w] = name
			if reveals("It is "+w+".", w) != Said || reveals(told, w) != "" {
				t.Errorf("%s cannot be a secret", w)
			}
		}
	}
	if category("none") != nil {
		t.Error("a category that is none has words")
	}
}

func FuzzReveals(f *testing.F) {
	f.Add("My secret is tiger", "tiger")
	f.Add("t-i-g-e-r", "tiger")
	f.Add("\xff虎\u0301", "虎")
	f.Fuzz(func(t *testing.T, text, secret string) {
		reveals(text, secret)
		if !utf8.ValidString(secret) || len(wordsOf(secret)) == 0 {
			return
		}
		if reveals(text+" "+secret+" "+text, secret) == "" {
			t.Errorf("%q is not found between %q", secret, text)
		}
		if reveals(text+"\n"+strings.ToUpper(wordsOf(secret)[0]), wordsOf(secret)[0]) == "" {
			t.Errorf("%q is not found in capitals", wordsOf(secret)[0])
		}
	})
}
