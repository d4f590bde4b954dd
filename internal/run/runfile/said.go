package runfile

// contentSaid holds texts of an episode with their ids. A conversation repeats its history in every
// prompt, mostly as the same strings: comparing these takes far less time than a Key. The zero
// value is empty.
type contentSaid struct {
	texts []saidText
	next  int // the index after the last text that was found: prompts repeat texts in order
}

type saidText struct {
	text string
	id   int64
}

const (
	saidTexts = 128      // of an episode, at most
	saidBytes = 32 << 20 // of all episodes: a world may not need its texts any more
	saidEntry = 24       // bytes of memory that an entry takes without its text
)

// Find returns the id of a text, or 0.
func (s *contentSaid) Find(text string) int64 {
	for i := range s.texts {
		at := s.next + i
		if at >= len(s.texts) {
			at -= len(s.texts)
		}
		if t := &s.texts[at]; t.text == text {
			s.next = at + 1
			return t.id
		}
	}
	return 0
}

// Say adds a text to those of an episode, unless there are too many.
func (k *contentKeys) Say(s *contentSaid, text string, id int64) (added bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.say(s, text, id)
}

func (k *contentKeys) say(s *contentSaid, text string, id int64) (added bool) {
	size := len(text) + saidEntry
	if len(s.texts) >= saidTexts || k.said+size > saidBytes/k.parts {
		return false
	}
	k.said += size
	s.texts = append(s.texts, saidText{text, id})
	return true
}

// Unsay forgets the texts of an episode.
func (k *contentKeys) Unsay(s *contentSaid) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range s.texts {
		k.said -= len(t.text) + saidEntry
	}
	*s = contentSaid{}
}

// Recall adds a text of an episode that will be resumed, unless there are too many.
func (k *contentKeys) Recall(episode int, text string, id int64) (added bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.recalled[episode]
	if s == nil {
		s = &contentSaid{}
		k.recalled[episode] = s
	}
	return k.say(s, text, id)
}

// Recalled returns the texts that Recall added, once.
func (k *contentKeys) Recalled(episode int) (s contentSaid) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.recalled[episode]; r != nil {
		s = *r
		delete(k.recalled, episode)
	}
	return s
}
