package price

import (
	"fmt"
	"strings"
)

// Rate names what decides a call's price beside its model and its tokens, such as
// "fast" or "fast us"; it is empty for an ordinary call. The books keep it.
func (u Usage) Rate() string {
	var names []string
	if u.Fast {
		names = append(names, "fast")
	}
	if u.US {
		names = append(names, "us")
	}
	return strings.Join(names, " ")
}

// At is the usage at a rate that [Usage.Rate] has named.
func (u Usage) At(rate string) (Usage, error) {
	u.Fast, u.US = false, false
	for name := range strings.FieldsSeq(rate) {
		switch name {
		case "fast":
			u.Fast = true
		case "us":
			u.US = true
		default:
			return u, fmt.Errorf("no price is known at the rate %q", rate)
		}
	}
	return u, nil
}
