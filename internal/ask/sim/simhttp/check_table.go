package simhttp

import (
	"slices"
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// kind is the type of a JSON value, as the vendors' errors name it.
type kind string

const (
	anything kind = "" // the value is not checked
	text     kind = "a string"
	boolean  kind = "a boolean"
	integer  kind = "an integer"
	decimal  kind = "a decimal"
	array    kind = "an array"
	object   kind = "an object"
)

// field describes a member of a request.
type field struct {
	kind   kind
	limits []float64 // of a number: the minimum, and perhaps the maximum
	values []string  // that a string may have
	fields fields    // of the object, or of the objects in the array
	texts  bool      // the array holds strings
}

// fields are the members that an object may have.
type fields map[string]field

// ignore adds members that may have any value, since the simulation ignores them.
func (f fields) ignore(names ...string) fields {
	for _, name := range names {
		f[name] = field{}
	}
	return f
}

// fault is a reason to refuse a value.
type fault int

const (
	badSyntax fault = iota
	unknownMember
	missingMember
	wrongType
	belowMin
	aboveMax
	badValue
)

// checkVendor writes a fault of the value at a path as the checkVendor's error. got is the value that was
// found, or its type.
type checkVendor func(what fault, at string, f field, got string) *Error

func checkOpenAI(what fault, at string, f field, got string) *Error {
	number, _ := strings.CutPrefix(string(f.kind), "a ")
	number, _ = strings.CutPrefix(number, "an ")
	switch what {
	case badSyntax:
		return invalid("", "We could not parse the JSON body of your request. (%s)", got)
	case unknownMember:
		return invalidCode("unknown_parameter", at, "Unknown parameter: '%s'.", at)
	case missingMember:
		return invalidCode("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	case belowMin:
		return invalidCode(number+"_below_min_value", at, "Invalid '%s': %s below minimum value. Expected a value >= %v, but got %s instead.", at, number, f.limits[0], got)
	case aboveMax:
		return invalidCode(number+"_above_max_value", at, "Invalid '%s': %s above maximum value. Expected a value <= %v, but got %s instead.", at, number, f.limits[1], got)
	case badValue:
		return invalidCode("invalid_value", at, "Invalid value: '%s'. Supported values are: %s.", got, list(f.values, "and"))
	default:
		return invalidCode("invalid_type", at, "Invalid type for '%s': expected %s, but got %s instead.", at, f.kind, got)
	}
}

func checkAnthropic(what fault, at string, f field, got string) *Error {
	at = strings.NewReplacer("[", ".", "]", "").Replace(at) // messages.0.role
	switch what {
	case badSyntax:
		return invalid("", "The request body is not valid JSON: %s", got)
	case unknownMember:
		return invalid("", "%s: Extra inputs are not permitted", at)
	case missingMember:
		return invalid("", "%s: Field required", at)
	case belowMin, aboveMax:
		if f.kind == decimal {
			return invalid("", "%s: range: %v..%v", at, f.limits[0], f.limits[1])
		}
		return invalid("", "%s: Input should be greater than or equal to %v", at, f.limits[0])
	case badValue:
		return invalid("", "%s: Input should be %s", at, list(f.values, "or"))
	default:
		return invalid("", "%s: Input should be %s", at, strings.Replace(string(f.kind), "a decimal", "a valid number", 1))
	}
}

// list writes values as an enumeration: 'a', 'b', and 'c'.
func list(values []string, last string) string {
	quoted := "'" + strings.Join(values, "', '") + "'"
	if i := strings.LastIndex(quoted, ", "); i >= 0 {
		comma := ""
		if len(values) > 2 && last == "and" {
			comma = ","
		}
		quoted = quoted[:i] + comma + " " + last + quoted[i+1:]
	}
	return quoted
}

// path is the way to a value: a member of the value at up, or an element where name is nil.
type path struct {
	up    *path
	name  []byte
	index int
}

// String writes the path as JavaScript does: messages[0].role.
func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.name == nil:
		return p.up.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.up == nil:
		return string(p.name)
	}
	return p.up.String() + "." + string(p.name)
}

// checkFormat is the table of one endpoint, with the vendor that serves it.
type checkFormat struct {
	fields fields
	vendor checkVendor
	lax    bool // unknown members and loose schemas are accepted
}

func (f *checkFormat) missing(at string) *Error {
	return f.vendor(missingMember, at, field{}, "")
}

// object checks the members of b, which is an object. It hands each known member that is not null
// to keep.
func (f *checkFormat) object(b []byte, up *path, allowed fields, keep func(key string, v []byte)) (err *Error) {
	body.Members(b, func(key, v []byte) bool {
		at := &path{up: up, name: key}
		switch is, known := allowed[string(key)]; {
		case !known && !f.lax:
			err = f.vendor(unknownMember, at.String(), is, "")
		case known && string(v) != "null":
			if err = f.value(v, at, is); err == nil && keep != nil {
				keep(string(key), v)
			}
		}
		return err == nil
	})
	return err
}

// value checks one value.
func (f *checkFormat) value(v []byte, at *path, is field) *Error {
	got := kindOf(v)
	if is.kind != anything && got != is.kind && !(is.kind == decimal && got == integer) {
		if got == decimal || got == integer {
			got = "a number"
		}
		return f.vendor(wrongType, at.String(), is, string(got))
	}
	switch is.kind {
	case text:
		if s := request.String(v); is.values != nil && s != "" && !slices.Contains(is.values, s) {
			return f.vendor(badValue, at.String(), is, s)
		}
	case integer, decimal:
		return f.number(v, at, is)
	case object:
		if is.fields != nil {
			return f.object(v, at, is.fields, nil)
		}
	case array:
		return f.elements(v, at, is)
	}
	return nil
}

func (f *checkFormat) number(v []byte, at *path, is field) *Error {
	n, _ := strconv.ParseFloat(string(v), 64)
	switch {
	case len(is.limits) > 0 && n < is.limits[0]:
		return f.vendor(belowMin, at.String(), is, string(v))
	case len(is.limits) > 1 && n > is.limits[1]:
		return f.vendor(aboveMax, at.String(), is, string(v))
	}
	return nil
}

func (f *checkFormat) elements(v []byte, at *path, is field) (err *Error) {
	each := field{kind: object, fields: is.fields}
	switch {
	case is.texts:
		each = field{kind: text}
	case is.fields == nil:
		return nil
	}
	i := 0
	body.Elements(v, func(e []byte) bool {
		err = f.value(e, &path{up: at, index: i}, each)
		i++
		return err == nil
	})
	return err
}

func kindOf(v []byte) kind {
	switch v[0] {
	case '"':
		return text
	case 't', 'f':
		return boolean
	case '[':
		return array
	case '{':
		return object
	case 'n':
		return "null"
	}
	if _, err := strconv.Atoi(string(v)); err != nil {
		return decimal
	}
	return integer
}
