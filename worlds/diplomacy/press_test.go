package diplomacy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/worlds/diplomacy/rules"
)

func present(powers ...rules.Power) rules.Set[rules.Power] {
	var set rules.Set[rules.Power]
	for _, w := range powers {
		set.Add(w)
	}
	return set
}

func like(from rules.Power) pressMessage { return pressMessage{Phase: "S1901M", Round: 1, From: from} }

// TestRecipients checks the recipients of a draft. An unknown name reaches nobody, never everybody.
func TestRecipients(t *testing.T) {
	t.Parallel()
	here := present(rules.France, rules.Germany, rules.Italy)
	cases := []struct{ to, want, why string }{
		{"GERMANY", "GERMANY", ""},
		{" germany ", "GERMANY", ""},
		{"EGMANY", "GERMANY", ""},
		{"ALL", "ALL", ""},
		{"everyone", "ALL", ""},
		{"Germany and Italy", "GERMANY ITALY", ""},
		{"GERMANY, ITALY,", "GERMANY ITALY", ""},
		{"Atlantis", "", "no power"},
		{"", "", "no power"},
		{"GERMANY, Atlantis", "", "no power"},
		{"all but Germany", "", "no power"},
		{"France", "", "yourself"},
		{"Turkey", "", "out of the game"},
	}
	for _, c := range cases {
		var m pressMail
		s := m.Sort([]Draft{{c.to, "Hello."}}, like(rules.France), here, 9)
		var got []string
		for _, one := range s.Messages {
			got = append(got, one.Recipient())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q reaches %q, want %q", c.to, got, c.want)
		}
		if c.why != "" && (len(s.Refused) != 1 || s.Refused[0].Reason != "recipient" || !strings.Contains(s.Refused[0].Why, c.why)) {
			t.Errorf("%q: refused %+v, want the reason %q", c.to, s.Refused, c.why)
		}
	}
}

func TestSortRefuses(t *testing.T) {
	t.Parallel()
	here := present(rules.Powers()...)
	var m pressMail
	m.Deliver(pressMessage{Phase: "S1901M", Round: 1, From: rules.France, To: rules.Italy, Text: "Shall we keep Piedmont empty this year?"})
	s := m.Sort([]Draft{
		{"ITALY", "shall we keep PIEDMONT empty, this year"},
		{"ITALY", "I will also leave Tunis to you."},
		{"ITALY", "I will also leave Tunis to you!"},
		{"GERMANY", " \n "},
		{"GERMANY", strings.Repeat("long ", 1000)},
		{"ALL", "Peace."},
		{"ALL", "One too many."},
	}, pressMessage{Phase: "S1901M", Round: 2, From: rules.France}, here, 3)
	var reasons []string
	for _, r := range s.Refused {
		reasons = append(reasons, r.Reason)
	}
	if len(s.Messages) != 3 || s.Cut != 1 || strings.Join(reasons, ",") != "repeated,repeated,empty,too many" {
		t.Errorf("%d messages, %d cut, refused for %v", len(s.Messages), s.Cut, reasons)
	}
	if n := utf8.RuneCountInString(s.Messages[1].Text); n > MaxText+1 {
		t.Errorf("a message has %d characters", n)
	}
}

// TestRepeats checks that only a repeated message that was not answered counts as a repetition.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var m pressMail
	first := pressMessage{Phase: "S1901M", Round: 1, From: rules.France, To: rules.Italy, Text: "Keep out of Piedmont."}
	m.Deliver(first)
	other, answer := first, pressMessage{Phase: "S1901M", Round: 2, From: rules.Italy, To: rules.France, Text: "No."}
	other.Text = "Then at least keep out of Tyrolia and of the Gulf of Lyon."
	if !m.Repeats(first) || m.Repeats(other) {
		t.Errorf("Repeats is %v for the same text and %v for a new one", m.Repeats(first), m.Repeats(other))
	}
	m.Deliver(answer)
	if m.Repeats(first) {
		t.Error("Repeats is true after an answer")
	}
	public := pressMessage{Phase: "S1901M", From: rules.France, Text: "Peace."}
	m.Deliver(public)
	later := public
	later.Phase = "F1901M"
	if !m.Repeats(public) || m.Repeats(later) {
		t.Errorf("public message: Repeats is %v now and %v in the next phase", m.Repeats(public), m.Repeats(later))
	}
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	var m pressMail
	say := func(from, to rules.Power, text string) { m.Deliver(pressMessage{From: from, To: to, Text: text}) }
	say(rules.Austria, rules.France, "one")
	say(rules.Austria, rules.France, "two")
	say(rules.Austria, rules.Russia, "one")
	say(rules.Austria, rules.Turkey, "one")
	say(rules.Russia, rules.Austria, "yes")
	say(rules.Turkey, rules.None, "Austria, I have read your letter.")
	say(rules.France, rules.None, "I speak to nobody.")
	got := m.Unanswered(rules.Austria)
	if got[rules.France] != 2 || got[rules.Russia] != 0 || got[rules.Turkey] != 0 {
		t.Errorf("unanswered messages: %v", got)
	}
}

// TestSeen checks that a private message is seen only by its sender and its recipient.
func TestSeen(t *testing.T) {
	t.Parallel()
	var m pressMail
	for _, from := range rules.Powers() {
		for to := rules.None; to <= rules.Turkey; to++ {
			if from != to {
				m.Deliver(pressMessage{Phase: "F1903M", Round: 2, From: from, To: to, Text: from.Name() + ">" + to.Name()})
			}
		}
	}
	for _, w := range rules.Powers() {
		for _, one := range m.Of("F1903M", w) {
			if !one.Public() && one.From != w && one.To != w {
				t.Errorf("%s reads %q", w.Name(), one.Text)
			}
		}
		if n := len(m.Of("F1903M", w)); n != 7+12 || !m.Heard("F1903M", 2, w) || m.Heard("F1903M", 1, w) || len(m.Of("S1903M", w)) != 0 {
			t.Errorf("%s reads %d messages", w.Name(), n)
		}
	}
	if len(m.All("F1903M")) != 49 {
		t.Errorf("%d messages in all, want 49", len(m.All("F1903M")))
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		" a\n\nb\tc\u00a0d ":   "a b c d",
		"\x1b[2Jx\x00y\u202ez": "[2Jx y z",
		"\xff\xfeok":           "ok",
		"> a:\n> b":            "> a: > b",
		"0123456789abc":        "0123456789…",
		"0123456 8 abc":        "0123456 8…",
	} {
		if got := pressLine(text, 10); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzSort(f *testing.F) {
	f.Add("GERMANY", "hello")
	f.Add("Germany and\nItaly", "\x00\xff")
	f.Fuzz(func(t *testing.T, to, text string) {
		var m pressMail
		s := m.Sort([]Draft{{to, text}, {to, text}}, like(rules.France), present(rules.Powers()...), 3)
		for _, one := range s.Messages {
			if one.Text == "" || strings.ContainsAny(one.Text, "\n\r\x00") || !utf8.ValidString(one.Text) || one.To == rules.France {
				t.Errorf("%q to %q: %+v", text, to, one)
			}
		}
	})
}
