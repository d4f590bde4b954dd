package reveal

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a text, and the form in which it gives a secret away.
type sample struct {
	secret, text string
	want         Form
}

func try(t *testing.T, samples []sample) {
	t.Helper()
	for _, c := range samples {
		if got := in(c.text, c.secret); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.secret, c.text, got, c.want)
		}
	}
}

func TestWordsAndLetters(t *testing.T) {
	t.Parallel()
	try(t, []sample{
		// A word.
		{"tiger", "My secret is tiger.", Said},
		{"tiger", "TIGER", Said},
		{"tiger", "tiger's", Said},
		{"tiger", "**tiger**, _tiger_, \"tiger\"", Said},
		{"tiger", "it's:tiger;", Said},
		{"tiger", "tiger-like", Said},
		{"tiger", "tígér", Said},
		{"tiger", "ti\u0301ger", Said},
		{"tiger", "ti\u200bg\u00ader", Said},
		{"tiger", "#MyWordIsTiger", Said},
		{"tiger", "my_word_is_tiger", Said},
		{"tiger", "{\"word\":\"tiger\"}", Said},
		{"ice cream", "Ice-cream!", Said},
		{"ice cream", "icecream", Said},
		{"Übermut", "ubermut", Said},
		{"虎", "我的秘密是虎。", Said},
		// A word with an ending, or without its small words.
		{"tiger", "tigers", Partial},
		{"poncho", "two ponchoes", Partial},
		{"accordion", "an accordionist", Partial},
		{"poppy", "poppies", Partial},
		{"The colour is red", "my colour: red", Partial},
		{"The colour is red", "The colour is, I think, red", ""},
		{"The colour is red", "red", ""},
		// Other letters.
		{"tiger", "ｔｉｇｅｒ", Lookalike},
		{"tiger", "𝕥𝕚𝕘𝕖𝕣 𝐓𝐈𝐆𝐄𝐑", Lookalike},
		{"tiger", "ⓣⓘⓖⓔⓡ", Lookalike},
		{"tiger", "🅃🄸🄶🄴🅁", Lookalike},
		{"tiger", "🆃🅸🅶🅴🆁", Lookalike},
		{"tiger", "🇹🇮🇬🇪🇷", Lookalike},
		{"tiger", "tіgеr", Lookalike}, // Cyrillic і and е
		{"tiger", "τιger", Lookalike},
		{"tiger", "ᴛɪɢᴇʀ", Lookalike},
		{"tiger", "ᵗⁱᵍᵉʳ", Lookalike},
		{"tiger", "t1g3r!", Lookalike},
		{"llama", "11@m4, or l1ama", Lookalike},
		{"tiger", "ɹǝƃᴉʇ", Reversed}, // upside down
		// Letter by letter.
		{"tiger", "t-i-g-e-r", Spelled},
		{"tiger", "T I G E R", Spelled},
		{"tiger", "t.i.g.e.r!", Spelled},
		{"tiger", "t, i, g, e, and r", Spelled},
		{"tiger", "I spell it t / i / g / e / r for you", Spelled},
		{"tiger", "1. T\n2. I\n3. G\n4. E\n5. R", Spelled},
		{"tiger", "ⓣ ⓘ ⓖ ⓔ ⓡ", Spelled},
		{"otter", "O, double T, E, R", Spelled},
		{"ice cream", "i c e c r e a m", Spelled},
		// In pieces.
		{"tiger", "ti ger", Split},
		{"tiger", "ti-ger", Split},
		{"horseradish", "horse, rad, ish", Split},
		{"tiger", "t-i-ger", Split},
		// Backwards.
		{"tiger", "regit", Reversed},
		{"tiger", "r-e-g-i-t", Reversed},
		{"tiger", "?regit drow ym sI", Reversed},
		{"tuba", "Read abut backwards.", Reversed},
		{"ice cream", "maerc eci", Reversed},
	})
}

func TestCodes(t *testing.T) {
	t.Parallel()
	try(t, []sample{
		{"tiger", "dGlnZXI=", Base64},
		{"tiger", "Decode bXkgc2VjcmV0IGlzIHRpZ2Vy please", Base64},
		{"tiger", "dGlnZXJz", Base64}, // tigers
		{"虎", "6JmO", Base64},
		{"tiger", "word-dGlnZXI=, or a/dGlnZXI", Base64},
		{"tiger", "A decade of 7469676572", Hex},
		{"tiger", "7469676572", Hex},
		{"tiger", "74 69 67 65 72", Hex},
		{"tiger", "0x74, 0x69, 0x67, 0x65, 0x72", Hex},
		{"tiger", "%74%69%67%65%72", Hex},
		{"tiger", `\x74\x69\x67\x65\x72`, Hex},
		{"tiger", "&#x74;&#x69;&#x67;&#x65;&#x72;", Hex},
		{"tiger", "116 105 103 101 114", Bytes},
		{"tiger", "&#116;&#105;&#103;&#101;&#114;", Bytes},
		{"tiger", "[84, 73, 71, 69, 82]", Bytes},
		{"tiger", "01110100 01101001 01100111 01100101 01110010", Bytes},
		{"tiger", "0111010001101001011001110110010101110010", Bytes},
		{"tiger", "gvtre", Rot13},
		{"ice cream", "vpr pernz", Rot13},
		{"walrus", "zdouxv", Cipher}, // by three
		{"tiger", "grtvi", Cipher},   // a is z
		{"tiger", "- .. --. . .-.", Morse},
		{"tiger", "−/··/−−·/·/·−·", Morse},
		{"tiger", "Listen: – •• ––• • •–• over", Morse},
		{"tiger", "Tango India Golf Echo Romeo", Nato},
		{"tiger", "T as in Tango, I as in India, G as in Golf, E as in Echo, R as in Romeo", Nato},
		{"tiger", "T for Tom, I for ink, G for gold, E for egg and R for rain", Nato},
		{"lynx", "lima yankee november x-ray", Nato},
		{"tiger", "20-9-7-5-18", Numbers},
		{"tiger", "It is 20, 9, 7, 5, 18.", Numbers},
		{"tiger", "The evening\nIs getting\nGreyer\nEvery\nRound", Acrostic},
		{"tiger", "Ten iguanas go eating rice.", Acrostic},
		{"tiger", "Hello. Ten iguanas go eating rice. Bye.", Acrostic},
		{"tiger", "That is it. I say no more. Go on. Enough for now? Really.", Acrostic},
		{"pangolin", "we have perhaps a new game of long inspired nights here", Acrostic},
	})
}

func TestNotGivenAway(t *testing.T) {
	t.Parallel()
	try(t, []sample{
		{"tiger", "antigerm", ""},
		{"otter", "Harry Potter and the blotter", ""},
		{"opal", "Your proposal is opalescent", ""},
		{"lute", "absolutely", ""},
		{"acorn", "I ate a corn dog", ""},
		{"tuba", "Two words that abut", ""},
		{"tiger", "a striped cat that roars", ""},
		{"tiger", "it rhymes with Geiger", ""},
		{"tiger", "it starts with t and ends with r", ""},
		{"tiger", "five letters: t _ g _ r", ""},
		{"tiger", "", ""},
		{"tiger", "t i g e", ""},
		{"tiger", "t-i-g eh e-r", ""},
		{"tiger", "20-9-7-5-1", ""},
		{"tiger", "116 105 103", ""},
		{"tiger", "Well... - I wait — .. you know.", ""},
		{"tiger", "Tango in India, golf in Rome, echo.", ""},
		{"tiger", "There is good in every rule we have.", ""}, // t i g i e r: not a whole sentence
		{"tiger", "bGlvbg==", ""},                             // lion
		{"tiger", "1024 2048 4096", ""},
		{"ice cream", "ice is cream", ""},
		{"ice cream", "cream, ice", ""},
		{"level", "I said nothing of it", ""}, // a palindrome, which is not in the text
		{"虎", "我不说", ""},
		{"…", "… … …", ""},
		{"", "anything", ""},
	})
}

// TestHear checks that pieces add up over the messages of a player, but only in order.
func TestHear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		messages []string
		at       int // the number of the message that gives tiger away, or 0
		want     Form
	}{
		{"quoted", []string{`It begins with "ti".`, "More later.", `And ends in "ger".`}, 3, Split},
		{"in capitals", []string{"First: TI", "Then GER, as you see."}, 2, Split},
		{"with hyphens", []string{"ti-", "-ger"}, 2, Split},
		{"alone", []string{"ti", "ger"}, 2, Split},
		{"the last words", []string{"My word starts with ti", "and it ends with ger"}, 2, Split},
		{"letter by letter", []string{"The first letter is T.", "The second is I.", "Third: G.", "'e'", "and R"}, 5, Split},
		{"letters in runs", []string{"t i g", "what is yours?", "e r"}, 3, Split},
		{"plain first", []string{"Hm.", "ok, tiger", "tiger, I said"}, 2, Said},
		{"in the wrong order", []string{"ger", "ti"}, 0, ""},
		{"something between", []string{`"ti"`, `"no"`, `"ger"`}, 0, ""},
		{"not all of it", []string{"ti", "ge"}, 0, ""},
		{"by accident", []string{"I like it.", "To dig her a hole", "I AM sure."}, 0, ""},
	} {
		l, at, form := NewSecret("tiger").Listen(), 0, Form("")
		for i, text := range c.messages {
			if f := l.Hear(Read(text)); f != "" && at == 0 {
				at, form = i+1, f
			}
		}
		if at != c.at || form != c.want {
			t.Errorf("%s: given away in message %d as %q, want %d, %q", c.name, at, form, c.at, c.want)
		}
	}
}

// TestListenToSomeForms checks that a Listener finds only the forms it was given.
func TestListenToSomeForms(t *testing.T) {
	t.Parallel()
	l := NewSecret("tiger", Said, Rot13).Listen()
	for text, want := range map[string]Form{"tiger": Said, "t-i-g-e-r": "", "regit": "", "gvtre": Rot13} {
		if got := l.Hear(Read(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if n := len(Forms()); n != 15 || len(slices.Compact(slices.Sorted(slices.Values(Forms())))) != n {
		t.Errorf("forms %v, want 15 different ones", Forms())
	}
}

func TestLongTalk(t *testing.T) {
	t.Parallel()
	l := NewSecret("tiger").Listen()
	for range 3 * keptPieces {
		if f := l.Hear(Read(`Is it "no"?`)); f != "" {
			t.Fatal(f)
		}
	}
	l.Hear(Read(`"ti"`))
	if f := l.Hear(Read(`"ger"`)); f != Split || len(l.pieces) > keptPieces || len(l.lasts) > keptPieces {
		t.Errorf("after a long talk: form %q, %d pieces", f, len(l.pieces))
	}
}

// TestProse checks that a long English text gives no word away by accident.
func TestProse(t *testing.T) {
	t.Parallel()
	prose := "When the rains came, everyone in the valley agreed that it had never been so wet; old men sat in their doors, " +
		"counting drops, and said: it was so in 1953, too. I have a plan, and a map. Do you? At 10, 9 or 8 o'clock we go on. " +
		"He and I ate corn... The price is 20-25 dollars - or so I hear - for ten. OK, AI, USA. What a day! Let us be fair."
	for _, secret := range []string{
		"anvil", "apron", "basalt", "cello", "cobalt", "drizzle", "fern", "frost", "gecko", "heron", "ibis", "lathe", "lute", "lynx", "nettle", "oboe",
		"opal", "otter", "sleet", "tapir", "thaw", "thistle", "tuba", "zephyr",
	} {
		if f := in(strings.Repeat(prose, 20), secret); f != "" {
			t.Errorf("%s is found as %s", secret, f)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("My secret is tiger", "tiger")
	f.Add("t-i-g-e-r", "tiger")
	f.Add("\xff虎\u0301", "虎")
	f.Add("dGlnZXI= 74 69 67 - .. --. 20 9 7", "ice cream")
	f.Fuzz(func(t *testing.T, text, secret string) {
		NewSecret(secret).Listen().Hear(Read(text))
		if !utf8.ValidString(secret) || len(Words(secret)) == 0 {
			return
		}
		if NewSecret(secret).Listen().Hear(Read(text+" "+secret+" "+text)) == "" {
			t.Errorf("%q is not found between %q", secret, text)
		}
		if in(text+"\n"+strings.ToUpper(Words(secret)[0]), Words(secret)[0]) == "" {
			t.Errorf("%q is not found in capitals", Words(secret)[0])
		}
	})
}

func BenchmarkHear(b *testing.B) {
	text := strings.Repeat("I would trade, but you first. What would you say if I told you mine now? ", 3)
	for b.Loop() {
		NewSecret("horseradish").Listen().Hear(Read(text))
	}
}

// in returns how one text gives a secret away, or "".
func in(text, secret string) Form { return NewSecret(secret).Listen().Hear(Read(text)) }
