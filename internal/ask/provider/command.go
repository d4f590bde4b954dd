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

// bedrockHost matches the hosts of Bedrock that answer calls. Other hosts of amazonaws.com may be rented by anybody.
var bedrockHost = regexp.MustCompile(`^(vpce-[a-z0-9-]+\.)?bedrock-runtime(-fips)?\.[a-z0-9-]+(\.vpce)?\.amazonaws\.com(\.cn)?$`)

// onlyLists matches the hosts of Bedrock that list models, and answer no calls.
var onlyLists = regexp.MustCompile(`^(vpce-[a-z0-9-]+\.)?bedrock(-fips)?\.[a-z0-9-]+(\.vpce)?\.amazonaws\.com(\.cn)?$`)

// checkCredentials refuses to send Google's credentials elsewhere, or to sign requests to others with those of AWS: a token of
// Google is good for everything that the user may do there, and a plan may come from somebody else.
func (p Provider) checkCredentials(bad complain) {
	at := path{"credentials"}
	switch {
	case p.Credentials == "" && p.Signs():
		p.checkHosts(bad, GetsSignature, NotSigned)
		return
	case p.Credentials == "" && p.Dialect == "bedrock":
		p.checkHosts(bad, func(address string) bool { return !onlyLists.MatchString(hostOf(address)) },
			"this host lists models and answers no calls: write https://bedrock-runtime.REGION.amazonaws.com")
		return
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
	p.checkHosts(bad, getsGoogle, "Google's credentials are sent only to https://REGION-aiplatform.googleapis.com, to https://aiplatform.googleapis.com and to this machine"+otherHost)
}

// checkHosts complains about each server that may not get the credentials of p.
func (p Provider) checkHosts(bad complain, gets func(address string) bool, problem string) {
	for i, one := range p.Servers() {
		field := path{"base_url"}
		if len(p.BaseURLs) > 0 {
			field = item("base_urls", i)
		}
		if one.BaseURL != "" && !gets(one.BaseURL) {
			bad(field, "%s", problem)
		}
	}
}

const otherHost = ": name a key for another host with key_env or key_command"

// NotSigned says which requests are signed.
const NotSigned = "only requests to https://bedrock-runtime.REGION.amazonaws.com and to this machine are signed with the credentials of AWS" + otherHost

// GetsSignature reports whether requests to an address may be signed with the credentials of AWS.
func GetsSignature(address string) bool { return isOwn(address, bedrockHost) }

// getsGoogle reports whether an address may get Google's credentials.
func getsGoogle(address string) bool { return isOwn(address, vertexHost) }

// isOwn reports whether an address is this machine, or over https one of a vendor's hosts.
func isOwn(address string, hosts *regexp.Regexp) bool {
	host := hostOf(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || strings.HasPrefix(strings.ToLower(address), "https://") && hosts.MatchString(host)
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
	if name := printer(p.KeyCommand); name != "" {
		bad(at, "%s prints its arguments, so the key would be in this list: name a program that has the key from elsewhere, or put the key into an environment variable and name that in key_env", name)
	}
}

// printer returns the program of a command that prints only what the command itself holds, or "": echo, also behind env or as what a
// shell is told to run, unless something is filled in there. It finds mistakes, and not everybody who wants to hide a key.
func printer(command []string) string {
	command = withoutEnv(command)
	if len(command) == 0 {
		return ""
	}
	name := programName(command[0])
	shells := []string{"sh", "bash", "zsh", "dash", "fish", "cmd", "cmd.exe", "powershell", "powershell.exe", "pwsh"}
	if slices.Contains(shells, name) {
		script := scriptOf(command[1:])
		fills := "$`"
		if strings.HasPrefix(name, "cmd") {
			fills = "%!"
		}
		if len(script) == 0 || strings.ContainsAny(strings.Join(script, " "), fills) {
			return ""
		}
		name = programName(script[0])
	}
	if slices.Contains([]string{"echo", "printf", "write-output"}, name) {
		return name
	}
	return ""
}

// programName returns the name of the program that a word begins with, without its folder.
func programName(word string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(word), " ")
	return strings.ToLower(filepath.Base(first))
}

// withoutEnv removes the program env, its flags and its variables.
func withoutEnv(command []string) []string {
	if len(command) == 0 || programName(command[0]) != "env" {
		return command
	}
	for i := 1; i < len(command); i++ {
		switch word := command[i]; {
		case word == "-u" || word == "-C": // a name or a folder follows
			i++
		case !strings.HasPrefix(word, "-") && !strings.Contains(word, "="):
			return command[i:]
		}
	}
	return nil
}

// scriptFlag matches the flags of shells that a script follows, such as -c, -lc and /c.
var scriptFlag = regexp.MustCompile(`^(?i:-[a-z]{0,2}c|-command|/c)$`)

// scriptOf returns what a shell is told to run by its arguments, if it is not a file.
func scriptOf(args []string) []string {
	isFlag := func(i int) bool {
		return strings.HasPrefix(args[i], "-") || len(args[i]) == 2 && args[i][0] == '/'
	}
	for i, word := range args {
		switch {
		case scriptFlag.MatchString(word):
			return args[i+1:]
		case !isFlag(i) && (i == 0 || !isFlag(i-1)): // not a flag's value either: a file
			return nil
		}
	}
	return nil
}
