package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"parley/world/worldsim"
)

// tell gives the secret away, one time in three in disguise.
func tell(d *worldsim.Dice, secret string) string {
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
		"In numbers, with a as one, my word is "+numbers(secret)+".",
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

// numbers writes the positions of letters in the alphabet, and all else unchanged.
func numbers(text string) string {
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
