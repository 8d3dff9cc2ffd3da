package view

// Inputs are what somebody has entered into a form, or into what a message asks: by the names of
// a part of it and of an input in that.
type Inputs map[string]map[string]Input

// Input is what one of them holds.
type Input struct {
	Value  string   // what was written
	Chosen []string // what was chosen, or ticked
}

// Choice is the one thing that was chosen; empty for nothing.
func (i Input) Choice() string {
	if len(i.Chosen) == 0 {
		return ""
	}
	return i.Chosen[0]
}
