package slack

import (
	"encoding/json"
	"net/http"
)

func (s *Server) getFaults(http.ResponseWriter, *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{"faults": append([]*fault{}, s.faults.list...)}, nil
}

func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) (any, error) {
	var raw json.RawMessage
	if err := readControl(w, r, &raw); err != nil {
		return nil, err
	}
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, refuse("a list of faults is needed: %s", err)
		}
	}
	// All are checked before any is put to work.
	var own []*fault
	for i, one := range list {
		var x fault
		err := decodeStrict(one, &x)
		if err == nil {
			err = x.check()
		}
		if err == nil {
			own = append(own, &x)
			continue
		}
		if s.opts.OtherFaults != nil {
			if handled, other := s.opts.OtherFaults.AddFault(one); handled {
				if other != nil {
					return nil, refuse("fault %d: %s", i, other)
				}
				continue
			}
		}
		return nil, refuse("fault %d: %s", i, err)
	}
	for _, x := range own {
		s.inject(x)
	}
	return object{"faults": len(list)}, nil
}

func (s *Server) deleteFaults(http.ResponseWriter, *http.Request) (any, error) {
	s.clearFaults()
	if s.opts.OtherFaults != nil {
		s.opts.OtherFaults.ClearFaults()
	}
	return object{"faults": 0}, nil
}
