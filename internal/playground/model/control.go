package model

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Control returns a handler for people and tests that steer the model over
// HTTP: GET /_control/bill answers the [Bill]; GET, POST (a [Fault] or a list
// of them, replacing all) and DELETE /_control/faults handle the faults. It
// asks for no key: serve it on loopback only.
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_control/bill", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, s.Bill())
	})
	mux.HandleFunc("GET /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, s.Faults())
	})
	mux.HandleFunc("DELETE /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		answerJSON(w, s.Faults())
	})
	mux.HandleFunc("POST /_control/faults", func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&raw); err != nil {
			http.Error(w, "the body is not JSON: "+err.Error(), http.StatusBadRequest)
			return
		}
		list, err := decodeFaults(raw)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.SetFaults(list)
		answerJSON(w, s.Faults())
	})
	return mux
}

func decodeFaults(raw json.RawMessage) ([]Fault, error) {
	var list []Fault
	if err := json.Unmarshal(raw, &list); err == nil {
		return list, nil
	}
	var one Fault
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, fmt.Errorf("decode fault: %w", err)
	}
	return []Fault{one}, nil
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that left needs no answer
}
