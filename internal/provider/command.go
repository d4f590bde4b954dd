package provider

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// plainWord matches the arguments that CommandLine writes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// CommandLine writes a command in one line, for people. Different commands give different lines, and a line has no
// invisible characters.
func CommandLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		if words[i] = word; !plainWord.MatchString(word) {
			words[i] = strconv.QuoteToASCII(word)
		}
	}
	return strings.Join(words, " ")
}

// KeyHeaders lists the headers that may carry a key.
func KeyHeaders() []string {
	return []string{"api-key", "authorization", "x-api-key", "x-goog-api-key"}
}

// checkKeyCommand checks the program that prints the key, and the header that carries it.
func (p Provider) checkKeyCommand(bad complain) {
	at := path{"key_command"}
	if h := strings.ToLower(p.KeyHeader); h != "" && !slices.Contains(KeyHeaders(), h) {
		bad(path{"key_header"}, "%s", unknown(p.KeyHeader, KeyHeaders()))
	}
	if len(p.KeyCommand) == 0 {
		return
	}
	switch program := p.KeyCommand[0]; {
	case p.InProcess():
		bad(at, "is for servers, and a provider of dialect %s has none", p.Dialect)
	case p.KeyEnv != "":
		bad(at, "not together with key_env: the key comes from a variable or from a program")
	case program == "":
		bad(at, "names no program: write a list such as [gcloud, auth, print-access-token]")
	case strings.ContainsAny(program, `/\\`) && !filepath.IsAbs(program):
		// A permission to run ./key would hold for another file in another folder.
		bad(at, "the program must be a name that is found on the PATH, or a whole path from the root")
	case strings.ContainsAny(program, " \t"):
		bad(at, "has a space in the program's name: write a list, one item for each argument, such as [gcloud, auth, print-access-token]")
	}
	for i, word := range p.KeyCommand {
		if strings.ContainsRune(word, 0) {
			bad(item("key_command", i), "holds a zero byte")
		}
	}
}
