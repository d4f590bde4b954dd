package reveal

import (
	"strings"
	"unicode"
)

// sound returns a letter as it sounds: lower case, without its accent.
func sound(r rune) rune {
	r = unicode.ToLower(r)
	if r < 0xE0 || r > 0x17F {
		return r
	}
	for _, group := range [...]string{
		"aàáâãäåāăą", "cçćĉċč", "dďđ", "eèéêëēĕėęě", "gĝğġģ", "hĥħ", "iìíîïĩīĭįı", "jĵ", "kķ", "lĺļľŀł",
		"nñńņňŉ", "oòóôõöøōŏő", "rŕŗř", "sśŝşšſ", "tţťŧ", "uùúûüũūŭůűų", "wŵ", "yýÿŷ", "zźżž",
	} {
		if strings.ContainsRune(group, r) {
			return rune(group[0])
		}
	}
	return r
}

// look returns the plain letter that a sign looks like, or how it sounds.
func look(r rune) rune {
	switch {
	case r < 0x80:
		return unicode.ToLower(r)
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return unicode.ToLower(r - 0xFEE0)
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical alphabets, each A to Z and a to z
		return 'a' + (r-0x1D400)%26
	case r >= 0x24B6 && r <= 0x24E9: // circled
		return 'a' + (r-0x24B6)%26
	case r >= 0x249C && r <= 0x24B5: // in brackets
		return 'a' + r - 0x249C
	case r >= 0x1F130 && r <= 0x1F149, r >= 0x1F150 && r <= 0x1F169, r >= 0x1F170 && r <= 0x1F189: // squared and negative
		return 'a' + (r-0x1F130)%32
	case r >= 0x1F1E6 && r <= 0x1F1FF: // the letters that flags are made of
		return 'a' + r - 0x1F1E6
	}
	s := sound(r)
	if s >= 0x80 {
		return twin(s)
	}
	return s
}

// twin returns the Latin letter that a letter looks like: Cyrillic, Greek,
// Armenian, small capitals, raised letters, script letters, and letters upside down.
func twin(r rune) rune {
	for _, group := range [...]string{
		"aаαɑᴀᵃₐɐ", "bьβʙᵇϐ", "cсϲᴄᶜℂℭɔ", "dԁᴅᵈⅾ", "eеёεєᴇᵉℯℰǝ", "fꜰᶠℱϝɟ", "gɡցɢᵍℊƃ", "hһհʜʰℋℌℍɥ", "iіїιɪᶦⁱⅰℐℑᴉ", "jјᴊʲϳɾ",
		"kкκᴋᵏʞ", "lӏʟˡⅼℒן", "mмᴍᵐⅿℳɯ", "nпηոɴⁿℕ", "oоοσօᴏᵒℴ", "pрρᴘᵖℙ", "qԛզǫℚ", "rгʀʳℛℜℝɹ", "sѕꜱˢ", "tтτᴛᵗʇ",
		"uυսᴜᵘ", "vѵνᴠᵛⅴʌ", "wԝωᴡʷʍ", "xхχˣⅹ", "yуγүʏʸʎ", "zᴢᶻℤℨ",
	} {
		if strings.ContainsRune(group, r) {
			return rune(group[0])
		}
	}
	return r
}

// leet returns the words of a text as they look if digits and signs are read as letters, in words
// that also have letters. A one can be an i or an l, so there may be two readings.
func leet(text string) [][]string {
	if !strings.ContainsAny(text, "0123456789@$!|") {
		return nil
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '@' && r != '$' && r != '!' && r != '|'
	})
	changed := !isASCII(text) // ASCII without such a word looks as it did
	for i, w := range words {
		words[i] = strings.TrimRight(w, "!") // at the end of a word it is punctuation
		changed = changed || isLeet(words[i])
	}
	if !changed {
		return nil
	}
	as := func(one rune) []string {
		read := make([]string, len(words))
		for i, w := range words {
			read[i] = digits(w, one)
		}
		return lookWords(strings.Join(read, " "))
	}
	return [][]string{as('i'), as('l')}
}

func isLeet(word string) bool {
	return strings.ContainsAny(word, "0134578@$!|") && strings.ContainsFunc(word, unicode.IsLetter)
}

// digits replaces the digits and signs of a word that can be read as letters.
func digits(word string, one rune) string {
	if !isLeet(word) {
		return word
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '0':
			return 'o'
		case '1', '!', '|':
			return one
		case '3':
			return 'e'
		case '4', '@':
			return 'a'
		case '5', '$':
			return 's'
		case '7':
			return 't'
		case '8':
			return 'b'
		}
		return r
	}, word)
}
