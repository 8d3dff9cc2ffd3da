package forge

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fault is one trouble asked for by POST /_control/forge/faults. It is of the calls, git's too,
// whose method and path have these parts.
type fault struct {
	Method, Path string
	Times        int    // 0: until DELETE
	Status       int    // that is answered; 0: what would be
	Retry        string // Retry-After
	Delay        string // before the answer, such as 5s
	After        bool   // what was asked is done, and the answer lost
	Half         bool   // of the answer
	Renamed      string // the repository's name by now
	Seen         int    // how many calls it was of
}

// faultFor returns the fault of a call, which is used up by that.
func (f *Forge) faultFor(r *http.Request) (fault, bool) {
	f.faultsMu.Lock()
	defer f.faultsMu.Unlock()
	for _, x := range f.faults {
		if strings.Contains(r.Method, x.Method) && strings.Contains(r.URL.Path, x.Path) && (x.Times == 0 || x.Seen < x.Times) {
			x.Seen++
			return *x, true
		}
	}
	return fault{}, false
}

// faulty serves calls with the faults that were asked for.
func (f *Forge) faulty(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, ok := f.faultFor(r)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		done := httptest.NewRecorder()
		if x.After {
			h.ServeHTTP(done, r)
		}
		if d, err := time.ParseDuration(x.Delay); err == nil {
			select {
			case <-r.Context().Done(): // whoever asked has gone: it is not done
				return
			case <-time.After(d):
			}
		}
		switch {
		case x.Renamed != "":
			was := r.PathValue("repo")
			if was == "" {
				was, _, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, Root), ".git")
			}
			http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), "/"+was, "/"+x.Renamed, 1), http.StatusMovedPermanently)
			return
		case x.Status != 0:
			if x.Retry != "" {
				w.Header().Set("Retry-After", x.Retry)
			}
			http.Error(w, `{"message":"a fault was asked for"}`, x.Status)
			return
		case !x.After:
			h.ServeHTTP(done, r)
		}
		for name, values := range done.Header() {
			w.Header()[name] = slices.Clone(values)
		}
		body := done.Body.Bytes()
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(done.Code)
		if !x.Half {
			_, _ = w.Write(body)
			return
		}
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	})
}

// postFaults takes a list, which comes before those that are there.
func (f *Forge) postFaults(_ *call, list []*fault) (any, error) {
	f.faultsMu.Lock()
	defer f.faultsMu.Unlock()
	f.faults = append(list, f.faults...)
	return f.faults, nil
}

func (f *Forge) getFaults(*call) (any, error) {
	f.faultsMu.Lock()
	defer f.faultsMu.Unlock()
	return slices.Clone(f.faults), nil
}

func (f *Forge) deleteFaults(*call) (any, error) {
	f.faultsMu.Lock()
	defer f.faultsMu.Unlock()
	f.faults = nil
	return []byte{}, nil
}
