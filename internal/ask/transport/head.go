package transport

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// appendHead appends the head of a request.
func appendHead(b []byte, req *http.Request) ([]byte, error) {
	target := req.URL.RequestURI()
	if !isToken(req.Method) || !isText(target) || !isText(req.Host) || strings.ContainsAny(target+req.Host, " ") {
		return b, fmt.Errorf("the method %q, the host %q or the path %q cannot be sent", req.Method, req.Host, target)
	}
	b = append(append(append(append(b, req.Method...), ' '), target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, req.Host...), "\r\n"...)
	var few [16]string // on the stack
	names := few[:0]
	for name := range req.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer": // they are ours
			continue
		}
		for _, value := range req.Header[name] {
			if !isToken(name) || !isText(value) {
				return b, fmt.Errorf("the header %q has a name or a value that cannot be sent", name)
			}
			b = append(append(append(append(b, name...), ": "...), strings.Trim(value, " \t")...), "\r\n"...)
		}
	}
	if size := req.ContentLength; size > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), size, 10), "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

// isText reports whether s can be a value in a head: it has no control characters but tabs.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isToken reports whether s can be a name in a head.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'; !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
