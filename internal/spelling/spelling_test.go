package spelling

import "testing"

func TestASlipIsFoundAndAnotherWordIsNot(t *testing.T) {
	t.Parallel()
	known := []string{"run", "demo", "doctor", "DECKHAND_DATA_DIR", "workspace", "workspaces"}
	for word, want := range map[string]string{
		"demmo": "demo", "dcotor": "doctor", "Doctor": "doctor", "rn": "run",
		"DECKHAND_DATADIR": "DECKHAND_DATA_DIR", "worksapce": "workspace", "workspacess": "workspaces",
		"": "", "x": "", "banana": "", "costs": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestASlipOfAFinger(t *testing.T) {
	t.Parallel()
	known := []string{"stop", "help", "costs", "grants", "approve"}
	for word, want := range map[string]string{
		"csots": "costs", "hlep": "help", "stpo": "stop", "stopp": "stop", "Costts": "costs", "aprove": "approve", "grents": "grants", "cots": "costs", //nolint:misspell // that is the point
		"stop": "", "shop": "", "step": "", "host": "", "hosts": "", "tests": "", "held": "", "": "", "stops": "stop", "crates": "",
	} {
		if got := Slip(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
