package slack

import "time"

// maxCalls is how many calls are remembered.
const maxCalls = 5000

// callRecord is one Web API call, for GET /_control/calls.
type callRecord struct {
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Args   object    `json:"args"`
	Status int       `json:"status"`
	Answer object    `json:"answer"`
	Millis int64     `json:"ms"`
}

// callLog remembers the latest calls, oldest first.
type callLog struct {
	seq  int
	list []*callRecord
}

func (l *callLog) add(r *callRecord) {
	l.seq++
	r.Seq = l.seq
	if len(l.list) >= maxCalls {
		l.list = append(l.list[:0:0], l.list[maxCalls/10:]...)
	}
	l.list = append(l.list, r)
}

// since are the calls after a sequence number.
func (l *callLog) since(seq int) []*callRecord {
	out := []*callRecord{}
	for _, r := range l.list {
		if r.Seq > seq {
			out = append(out, r)
		}
	}
	return out
}
