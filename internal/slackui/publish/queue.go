package publish

func (s *queue) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it will check anyway
	}
}

// enqueue makes j pending, last in line, and wakes Run.
func (s *queue) enqueue(j *job) {
	s.seq++
	j.seq = s.seq
	s.requeue(j)
}

// requeue makes j pending without losing its place, and wakes Run.
func (s *queue) requeue(j *job) {
	if s.draining && !j.stays() {
		s.leave(j)
		return
	}
	j.index = len(s.pending)
	s.pending = append(s.pending, j)
	if j.call != nil {
		s.waiting++
	}
	s.signal()
}

// leave drops what need not be sent before the stop. A message stays known, so that its final state, if it comes in
// time, is an edit.
func (s *queue) leave(j *job) {
	if j.call != nil {
		s.forget(j)
	}
}

// dequeue removes j from the pending ones.
func (s *queue) dequeue(j *job) {
	last := len(s.pending) - 1
	s.pending[j.index] = s.pending[last]
	s.pending[j.index].index = j.index
	s.pending[last] = nil
	s.pending = s.pending[:last]
	j.index = -1
	if j.call != nil {
		s.waiting--
	}
}

// forget frees what is kept for j, which is not pending. Its key accepts nothing more.
func (s *queue) forget(j *job) {
	j.done, j.after = true, nil
	j.group.refs--
	if j.call != nil {
		if s.lastCall[j.call.Key] == j {
			delete(s.lastCall, j.call.Key)
		}
		return
	}
	delete(s.open, j)
	delete(s.messages, j.msg.Key)
	s.ended.add(j.key)
}
