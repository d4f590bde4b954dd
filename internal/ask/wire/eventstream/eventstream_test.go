package eventstream

import (
	"bytes"
	"encoding/binary"
	"testing"

	"parley/internal/kit/sse"
)

// TestLengths: frames are read; lengths that do not fit, and headers that would take long, are refused before the frame is read.
func TestLengths(t *testing.T) {
	t.Parallel()
	read := func(stream []byte) (events int, err error) {
		_, err = Read(bytes.NewReader(stream), 64<<20, func() {}, func(sse.Event) (bool, error) { events++; return false, nil })
		return events, err
	}
	whole := Append(Append(nil, "a", []byte("{}")), "b", []byte("{}"))
	if n, err := read(whole); n != 2 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
	for _, lengths := range [][2]uint32{{0, 0}, {15, 0}, {100, 90}, {1 << 20, 5 << 10}, {1 << 30, 16}, {^uint32(0), ^uint32(0)}} {
		frame := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, lengths[0]), lengths[1])
		if n, err := read(append(frame, make([]byte, 1<<10)...)); n != 0 || err == nil {
			t.Errorf("%v: %d events, %v", lengths, n, err)
		}
	}
}
