package provider

import (
	"net"
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

// Credentials says whose chain of credentials gives the key of a provider.
type Credentials string

// CredentialsGoogle are Google's Application Default Credentials: see package credential/google.
const CredentialsGoogle Credentials = "google"

// CredentialNames lists the values of Credentials.
func CredentialNames() []string { return []string{string(CredentialsGoogle)} }

// vertexHost matches the hosts of Vertex AI.
var vertexHost = regexp.MustCompile(`^([a-z0-9-]+-)?aiplatform(\.[a-z0-9-]+\.rep)?\.googleapis\.com$`)

// checkCredentials refuses to send Google's credentials elsewhere: a token of Google is good for everything that the user may
// do there, and a plan may come from somebody else.
func (p Provider) checkCredentials(bad complain) {
	at := path{"credentials"}
	switch {
	case p.Credentials == "":
		return
	case p.Credentials != CredentialsGoogle:
		bad(at, "%s", unknown(string(p.Credentials), CredentialNames()))
		return
	case p.InProcess() || p.Dialect == "bedrock":
		bad(at, "is for servers of Google, and dialect %s is not theirs", p.Dialect)
		return
	case p.KeyEnv != "" || len(p.KeyCommand) > 0:
		bad(at, "not together with key_env or key_command: the key comes from one of them")
	}
	for i, one := range p.Servers() {
		field := path{"base_url"}
		if len(p.BaseURLs) > 0 {
			field = item("base_urls", i)
		}
		if one.BaseURL != "" && !getsGoogle(one.BaseURL) {
			bad(field, "Google's credentials are sent only to https://REGION-aiplatform.googleapis.com, to https://aiplatform.googleapis.com and to this machine: name a key for another host with key_env or key_command")
		}
	}
}

// getsGoogle reports whether an address may get Google's credentials.
func getsGoogle(address string) bool {
	host := hostOf(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || strings.HasPrefix(strings.ToLower(address), "https://") && vertexHost.MatchString(host)
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
