package provider

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/fieldtag"
	"parley/internal/kit/text"
	"parley/llm"
)

// Validate returns what is wrong with p, naming each field and what it allows, or nil. It does not read the environment:
// a missing key is found when p is opened.
func (p Provider) Validate() error {
	var errs []error
	for _, e := range p.Check() {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// FieldError is one field of a provider that is wrong.
type FieldError struct {
	Provider string
	fieldtag.Fault
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("provider %s: %s: %s", cmp.Or(e.Provider, "without a name"), e.Field(), e.Problem)
}

// Check returns every field of p that is wrong: see Validate. What the tags of p say comes first.
func (p Provider) Check() (all []*FieldError) {
	for _, f := range fieldtag.Check(p) {
		all = append(all, &FieldError{p.Name, f})
	}
	bad := func(at fieldPath, format string, args ...any) {
		all = append(all, &FieldError{p.Name, fieldtag.Fault{Path: at, Problem: fmt.Sprintf(format, args...)}})
	}
	if p.Name == "" || strings.ContainsAny(p.Name, "/ \t\n") {
		bad(fieldPath{"name"}, "must be a word without slash or space, as lab in lab/any-model")
	}
	switch {
	case p.Dialect == "":
		bad(fieldPath{"dialect"}, "is missing: one of %s", strings.Join(Dialects(), ", "))
		p.Dialect = "openai" // whose checks cover everything else
	case !slices.Contains(Dialects(), p.Dialect):
		bad(fieldPath{"dialect"}, "%s", unknownName(p.Dialect, Dialects()))
	}
	p.checkServers(bad)
	if p.KeyEnv != "" && !IsVariable(p.KeyEnv) {
		// The value may be a key in the wrong place, so the error does not show it.
		bad(fieldPath{"key_env"}, "must be the name of an environment variable (letters, digits, _), never the key itself")
	}
	p.checkKeyCommand(bad)
	p.checkCredentials(bad)
	p.checkHeaders(bad)
	p.checkSecrets(bad)
	for _, pattern := range slices.Sorted(maps.Keys(p.ModelLimits)) {
		if strings.ContainsAny(pattern, `[]\`) {
			bad(fieldPath{"model_limits", pattern}, "must have no brackets and backslashes: * is any text, ? any one byte")
		}
	}
	p.checkBatch(bad)
	p.checkCapabilities(bad)
	return all
}

type fieldPath []string

type complain func(at fieldPath, format string, args ...any)

var version = regexp.MustCompile(`/v[0-9][^/]*(/|$)`)

// Unversioned reports whether an address names no API version such as /v1. Most servers do not answer there.
func Unversioned(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && !version.MatchString(u.Path)
}

// itemPath is the path of a list's item, or of a field in it.
func itemPath(list string, i int, field ...string) fieldPath {
	return append(fieldPath{list, fmt.Sprintf("[%d]", i)}, field...)
}

func (p Provider) checkServers(bad complain) {
	switch {
	case p.InProcess():
		given := map[string]bool{"base_urls": len(p.BaseURLs) > 0, "session": p.HasSessions(), "close_session": p.CloseSession, "metrics": p.Metrics != ""}
		for _, field := range slices.Sorted(maps.Keys(given)) {
			if given[field] {
				bad(fieldPath{field}, "is for servers, and a provider of dialect %s has none", p.Dialect)
			}
		}
		return
	case p.BaseURL == "" && len(p.BaseURLs) == 0 && p.Example != "":
		bad(fieldPath{"base_url"}, "is missing: your account's own address, as %s", p.Example)
	case len(p.BaseURLs) == 0:
		if err := checkURL(p.BaseURL); err != nil {
			bad(fieldPath{"base_url"}, "%v", err)
		}
	case p.BaseURL != "":
		bad(fieldPath{"base_urls"}, "not together with base_url: list all servers in base_urls")
	case p.Batch != nil && p.BatchBucket() == "":
		bad(fieldPath{"batch"}, "not together with base_urls: a batch API belongs to one server")
	}
	p.checkVersion(bad)
	seen := map[string]bool{}
	for i, u := range p.BaseURLs {
		at := itemPath("base_urls", i)
		if err := checkURL(u); err != nil {
			bad(at, "%v", err)
		} else if u = strings.TrimRight(u, "/"); seen[u] {
			bad(at, "is listed twice: list each server once")
		}
		seen[u] = true
	}
	if p.CloseSession && p.Session != SessionPath {
		bad(fieldPath{"close_session"}, "wants session: path, since it is closed at its address")
	}
	if p.Metrics != "" && (p.Metrics[0] != '/' || strings.ContainsFunc(p.Metrics, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' })) {
		bad(fieldPath{"metrics"}, "must be a path from the server's root, as /metrics")
	}
}

// checkVersion checks the version of Azure's older paths, or that of Vertex AI.
func (p Provider) checkVersion(bad complain) {
	at := fieldPath{"api_version"}
	switch {
	case p.APIVersion == "" || p.Dialect == "anthropic" && p.APIVersion == VertexVersion:
		return
	case p.Dialect == "anthropic":
		bad(at, "must be %s in the anthropic dialect, for Vertex AI", VertexVersion)
	case p.Dialect != "openai" && p.Dialect != "responses":
		bad(at, "is for Azure OpenAI, whose dialects are openai and responses, and for Anthropic's models on Vertex AI")
	case !azureVersion.MatchString(p.APIVersion):
		bad(at, "must be a version of Azure OpenAI, as 2024-10-21")
	case p.Batch != nil:
		bad(at, "not together with batch: use the address that ends in /openai/v1")
	}
	for i, one := range p.Servers() {
		if p.APIVersion != "" && strings.Contains(one.BaseURL+"/", "/v1/") {
			field := fieldPath{"base_url"}
			if len(p.BaseURLs) > 0 {
				field = itemPath("base_urls", i)
			}
			bad(field, "ends in /v1, where Azure wants no api_version: leave one of them out, as https://RESOURCE.openai.azure.com/openai")
		}
	}
}

var azureVersion = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?$`)

func (p Provider) checkHeaders(bad complain) {
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		value := p.Headers[name]
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }):
			bad(fieldPath{"headers", name}, "%q is not the name of a header", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			bad(fieldPath{"headers", name}, "its value holds a control character")
		}
		if NamesSecret(name) {
			bad(fieldPath{"headers", name}, "a secret does not belong here: name its environment variable in key_env")
		}
	}
}

func (p Provider) checkCapabilities(bad complain) {
	var efforts []string
	for _, e := range llm.Efforts() {
		efforts = append(efforts, string(e))
	}
	for i, c := range p.Capabilities {
		for _, e := range c.Efforts {
			if !slices.Contains(efforts, e) {
				bad(itemPath("capabilities", i, "efforts"), "%s", unknownName(e, efforts))
			}
		}
	}
}

func checkURL(s string) error {
	if s == "" {
		return errors.New("is missing: an http or https address, as https://host/v1")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not an address: use http or https, as https://host/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://, as https://host/v1")
	case u.Host == "" || u.Hostname() == "":
		return errors.New("has no host: use an address as https://host/v1")
	case u.User != nil:
		return errors.New("must not hold a user or password; name the key's environment variable in key_env")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("must end with the path: no ? and no #; a key belongs in an environment variable that key_env names")
	}
	return nil
}

// IsVariable reports whether s is the name of an environment variable.
func IsVariable(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// UnknownError means that neither a preset nor one of Own has the name Name. An empty Name means that a model has no
// provider.
type UnknownError struct {
	Name string
	Own  []string
}

// Unknown returns an UnknownError.
func Unknown(name string, own ...string) error { return &UnknownError{Name: name, Own: own} }

// Error lists the known providers, and suggests one.
func (e *UnknownError) Error() string {
	names := slices.Clone(e.Own)
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if e.Name == "" {
		return "a model is written provider/model, as sim/small; the providers are " + strings.Join(names, ", ")
	}
	return "provider " + unknownName(e.Name, names)
}

// unknownName says that name is not one of the allowed ones, and suggests one.
func unknownName(name string, allowed []string) string {
	s := fmt.Sprintf("%q is not known; use one of %s", name, strings.Join(allowed, ", "))
	if n := text.Nearest(name, allowed); n != "" {
		s += fmt.Sprintf(" (did you mean %s?)", n)
	}
	return s
}

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

// CredentialsGoogle are Google's Application Default Credentials: see package credential.
const CredentialsGoogle Credentials = "google"

// vertexHost matches the hosts of Vertex AI.
var vertexHost = regexp.MustCompile(`^([a-z0-9-]+-)?aiplatform(\.[a-z0-9-]+\.rep)?\.googleapis\.com$`)

// bedrockHost matches the hosts of Bedrock that answer calls. Other hosts of amazonaws.com may be rented by anybody.
var bedrockHost = regexp.MustCompile(`^(vpce-[a-z0-9-]+\.)?bedrock-runtime(-fips)?\.[a-z0-9-]+(\.vpce)?\.amazonaws\.com(\.cn)?$`)

// onlyLists matches the hosts of Bedrock that list models, and answer no calls.
var onlyLists = regexp.MustCompile(`^(vpce-[a-z0-9-]+\.)?bedrock(-fips)?\.[a-z0-9-]+(\.vpce)?\.amazonaws\.com(\.cn)?$`)

// checkCredentials refuses to send Google's credentials elsewhere, or to sign requests to others with those of AWS: a token of
// Google is good for everything that the user may do there, and a plan may come from somebody else.
func (p Provider) checkCredentials(bad complain) {
	at := fieldPath{"credentials"}
	switch {
	case p.Credentials == "" && p.Signs():
		p.checkHosts(bad, GetsSignature, NotSigned)
		return
	case p.Credentials == "" && p.Dialect == "bedrock":
		p.checkHosts(bad, func(address string) bool { return !onlyLists.MatchString(hostOf(address)) },
			"this host lists models and answers no calls: write https://bedrock-runtime.REGION.amazonaws.com")
		return
	case p.Credentials != CredentialsGoogle:
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
		field := fieldPath{"base_url"}
		if len(p.BaseURLs) > 0 {
			field = itemPath("base_urls", i)
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
	at := fieldPath{"key_command"}
	if h := strings.ToLower(p.KeyHeader); h != "" && !slices.Contains(KeyHeaders(), h) {
		bad(fieldPath{"key_header"}, "%s", unknownName(p.KeyHeader, KeyHeaders()))
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
			bad(itemPath("key_command", i), "holds a zero byte")
		}
	}
	if name := keyPrinter(p.KeyCommand); name != "" {
		bad(at, "%s prints its arguments, so the key would be in this list: name a program that has the key from elsewhere, or put the key into an environment variable and name that in key_env", name)
	}
}

// keyPrinter returns the program of a command that prints only what the command itself holds, or "": echo, also behind env or as what a
// shell is told to run, unless something is filled in there. It finds mistakes, and not everybody who wants to hide a key.
func keyPrinter(command []string) string {
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

// maybeKey matches keys of well-known vendors anywhere. It is for hiding, and matches rather too much than too little.
var maybeKey = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|hf|gh[pousr]|github_pat|glpat|r8|nvapi|pplx|tgp|fw|(?i:Bearer|Basic|Token))[-_ ][A-Za-z0-9+/_=.-]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+`)

// surelyKey is for refusing: a prefix that means a key, and a body like that of a key.
var surelyKey = regexp.MustCompile(`\b(?:sk-|sk_|rk_|gsk_|xai-|hf_|gh[pousr]_|github_pat_|glpat-|r8_|nvapi-|pplx-|tgp_)[A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{30,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|^\s*(?i:Bearer|Basic|Token)\s+\S{8,}\s*$`)

// Secrets lists the parts of a text that may be keys.
func Secrets(text string) []string { return maybeKey.FindAllString(text, -1) }

// isKey reports whether a value looks like it holds a key.
func isKey(value string) bool { return surelyKey.MatchString(value) }

// isReference reports whether a value looks like a variable for a shell or another program: ${LAB_KEY}, {{LAB_KEY}}.
func isReference(value string) bool { return references.MatchString(value) }

var references = regexp.MustCompile(`\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\{\{.*\}\}`)

// NamesSecret reports whether a header or a key of that name carries a secret, whatever its value.
func NamesSecret(name string) bool {
	words := []string{"key", "token", "secret", "password", "passwd", "authorization", "credential", "cookie"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(strings.ToLower(name), word) })
}

// checkSecrets refuses keys in places where only the name of a variable belongs. No message repeats the key.
func (p Provider) checkSecrets(bad complain) {
	const remedy = "put it into an environment variable and name that in key_env"
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		value := p.Headers[name]
		switch {
		case isKey(value):
			bad(fieldPath{"headers", name}, "its value is a key, which must not be here: %s", remedy)
		case isReference(value):
			bad(fieldPath{"headers", name}, "variables are not replaced here: name the one with the key in key_env")
		}
	}
	if holdsKey(p.BaseURL) {
		bad(fieldPath{"base_url"}, "holds a key, which must not be here: %s", remedy)
	}
	for i, u := range p.BaseURLs {
		if holdsKey(u) {
			bad(itemPath("base_urls", i), "holds a key, which must not be here: %s", remedy)
		}
	}
	if holdsKey(p.Metrics) {
		bad(fieldPath{"metrics"}, "holds a key, which must not be here: %s", remedy)
	}
	for i, word := range p.KeyCommand {
		if isKey(word) {
			bad(itemPath("key_command", i), "is a key, which must not be here: key_command is a program that prints the key")
		}
	}
	for i, c := range p.Capabilities {
		if isKey(c.SeedField) {
			bad(itemPath("capabilities", i, "seed_field"), "is a key, which must not be here: %s", remedy)
		}
	}
}

// holdsKey looks for a key in an address, except in its host.
func holdsKey(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return isKey(address)
	}
	for part := range strings.FieldsFuncSeq(u.Path+" "+u.RawQuery+" "+u.Fragment, func(r rune) bool { return strings.ContainsRune("/&=? ", r) }) {
		if isKey(part) {
			return true
		}
	}
	return false
}
