package telemetry

import (
	"encoding/binary"
	"math"
	"strings"
)

// message is a message of protobuf. The numbers of fields are those of OpenTelemetry's trace.proto, metrics.proto and common.proto.
type message []byte

// The ways in which protobuf writes fields.
const (
	varint         = 0
	fixed64        = 1
	lengthPrefixed = 2
	fixed32        = 5
)

func (m message) key(field, wire uint64) message { return binary.AppendUvarint(m, field<<3|wire) }

func (m message) number(field, n uint64) message {
	return binary.AppendUvarint(m.key(field, varint), n)
}

func (m message) long(field, n uint64) message {
	return binary.LittleEndian.AppendUint64(m.key(field, fixed64), n)
}

func (m message) short(field uint64, n uint32) message {
	return binary.LittleEndian.AppendUint32(m.key(field, fixed32), n)
}

func (m message) bytes(field uint64, b []byte) message {
	return append(binary.AppendUvarint(m.key(field, lengthPrefixed), uint64(len(b))), b...)
}

// text appends a text. Collectors refuse a request with a text that is not UTF-8.
func (m message) text(field uint64, s string) message {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return append(binary.AppendUvarint(m.key(field, lengthPrefixed), uint64(len(s))), s...)
}

// all appends messages as values of one repeated field.
func (m message) all(field uint64, values []message) message {
	for _, one := range values {
		m = m.bytes(field, one)
	}
	return m
}

// attribute returns a name with its value.
func attribute(name string, value message) message {
	return message(nil).text(1, name).bytes(2, value)
}

func textOf(name, v string) message { return attribute(name, message(nil).text(1, v)) }

func boolOf(name string, v bool) message {
	var n uint64
	if v {
		n = 1
	}
	return attribute(name, message(nil).number(2, n))
}

func intOf[T int | int64](name string, v T) message {
	return attribute(name, message(nil).number(3, uint64(v)))
}

func floatOf(name string, v float64) message {
	return attribute(name, message(nil).long(4, math.Float64bits(v)))
}

func listOf(name string, texts []string) message {
	var list message
	for _, s := range texts {
		list = list.bytes(1, message(nil).text(1, s))
	}
	return attribute(name, message(nil).bytes(5, list))
}
