package forge

import (
	"container/list"
	"net/http"
	"sync"
)

// Of one repository: what a poll of a few pull requests asks for.
const (
	maxAnswers     = 256
	maxAnswerBytes = 8 << 20
)

// answers keeps the last answers that have an ETag: asked again with it, a forge that has
// nothing new says so in no bytes, and most do not count the call. The zero value is empty.
type answers struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	used  list.List // of *answer, the last used first
	bytes int
}

type answer struct {
	key, etag string
	header    http.Header
	body      []byte
}

func (a *answers) of(key string) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.byKey[key]
	if e == nil {
		return nil
	}
	a.used.MoveToFront(e)
	return e.Value.(*answer)
}

func (a *answers) keep(key string, one *answer) {
	if len(one.body) > maxAnswerBytes/4 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.byKey[key]; e != nil {
		a.drop(e)
	}
	if a.byKey == nil {
		a.byKey = map[string]*list.Element{}
	}
	one.key = key
	a.byKey[key] = a.used.PushFront(one)
	for a.bytes += len(one.body); a.bytes > maxAnswerBytes || a.used.Len() > maxAnswers; {
		a.drop(a.used.Back())
	}
}

func (a *answers) drop(e *list.Element) {
	one := a.used.Remove(e).(*answer)
	delete(a.byKey, one.key)
	a.bytes -= len(one.body)
}
