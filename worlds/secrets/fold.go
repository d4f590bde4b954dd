package secrets

import (
	"strings"
	"unicode"
)

// wordsOf splits a text into its words as they sound: lower case, without accents,
// punctuation, invisible signs or fancy forms of letters. It is the part of Unicode's
// NFKC that somebody who wants to hide a Latin word would use.
func wordsOf(text string) []string {
	folded := strings.Map(func(r rune) rune {
		r = plain(r)
		switch {
		case 'a' <= r && r <= 'z':
			return r
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r):
			return -1 // combining accents, soft hyphens, zero-width signs
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mc, r):
			return r
		}
		return ' '
	}, text)
	return strings.Fields(folded)
}

// plain returns the plain lower-case form of a letter.
func plain(r rune) rune {
	if r < 0x80 {
		return unicode.ToLower(r)
	}
	switch {
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return unicode.ToLower(r - 0xFEE0)
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical alphabets, each A to Z and a to z
		return 'a' + (r-0x1D400)%26
	case r >= 0x24B6 && r <= 0x24E9: // circled
		return 'a' + (r-0x24B6)%26
	case r >= 0x1F130 && r <= 0x1F149, r >= 0x1F150 && r <= 0x1F169, r >= 0x1F170 && r <= 0x1F189: // squared and negative
		return 'a' + (r-0x1F130)%32
	case r >= 0x1F1E6 && r <= 0x1F1FF: // the letters that flags are made of
		return 'a' + r - 0x1F1E6
	}
	return unaccented(unicode.ToLower(r))
}

// unaccented takes the accent off a lower-case Latin letter.
func unaccented(r rune) rune {
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

// unspaced says whether a text is in a script that puts no spaces between words.
func unspaced(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}
