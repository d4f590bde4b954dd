package runfile

import (
	"strconv"
	"strings"
	"testing"
)

// TestSaid: an episode's texts are found in any order, and forgotten texts make room for others.
func TestSaid(t *testing.T) {
	t.Parallel()
	k := newKeys(1)
	var s contentSaid
	for i := range saidTexts {
		if !k.Say(&s, strconv.Itoa(i), int64(i+1)) {
			t.Fatalf("text %d was not added", i)
		}
	}
	if k.Say(&s, "one more", 1) {
		t.Errorf("more than %d texts were added", saidTexts)
	}
	for _, text := range []int{0, 1, 2, 1, 127, 0, 64} {
		if id := s.Find(strconv.Itoa(text)); id != int64(text+1) {
			t.Errorf("text %d has id %d", text, id)
		}
	}
	if id := s.Find("unknown"); id != 0 {
		t.Errorf("an unknown text has id %d", id)
	}
	k.Unsay(&s)
	if id := s.Find("0"); id != 0 || k.said != 0 {
		t.Errorf("after Unsay a text has id %d, and %d bytes are counted", id, k.said)
	}
	var other contentSaid
	large := strings.Repeat("x", saidBytes-saidEntry)
	if !k.Say(&s, large, 1) || k.Say(&other, "", 2) {
		t.Error("the limit on all episodes does not hold")
	}
	k.Unsay(&s)
	if !k.Say(&other, "", 2) {
		t.Error("forgotten texts still count")
	}
}

// TestRecall: texts are recalled once, for their own episode.
func TestRecall(t *testing.T) {
	t.Parallel()
	k := newKeys(1)
	k.Recall(7, "a", 1)
	k.Recall(7, "b", 2)
	k.Recall(8, "a", 3)
	seven := k.Recalled(7)
	if a, b := seven.Find("a"), seven.Find("b"); a != 1 || b != 2 {
		t.Errorf("the texts of episode 7 have ids %d and %d", a, b)
	}
	again, eight := k.Recalled(7), k.Recalled(8)
	if id := again.Find("a"); id != 0 {
		t.Errorf("a text was recalled twice, as %d", id)
	}
	if id := eight.Find("a"); id != 3 {
		t.Errorf("the text of episode 8 has id %d", id)
	}
}
