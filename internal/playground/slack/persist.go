package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

const stateVersion = 1

// saveDelay gathers changes: a stream that grows would otherwise write the file
// for every piece of text.
const saveDelay = time.Second

// loadWorkspace reads the state file, or seeds a workspace if there is none.
func loadWorkspace(o Options) (*workspace, error) {
	if o.StateFile == "" {
		return newWorkspace(time.Now()), nil
	}
	if o.Fresh {
		if err := os.RemoveAll(filesFolder(o.StateFile)); err != nil {
			return nil, fmt.Errorf("forget uploaded files: %w", err)
		}
		return newWorkspace(time.Now()), nil
	}
	raw, err := os.ReadFile(o.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return newWorkspace(time.Now()), nil
	}
	if err != nil {
		return nil, err
	}
	w := &workspace{Messages: map[string][]*message{}, Files: map[string]*file{}, Homes: map[string]*view{}}
	if err := decodeJSON(raw, w); err != nil {
		return nil, fmt.Errorf("parse %s (start fresh to forget it): %w", o.StateFile, err)
	}
	if w.Version != stateVersion {
		return nil, fmt.Errorf("%s has format %d, this program reads %d: start fresh to forget it", o.StateFile, w.Version, stateVersion)
	}
	w.index()
	for _, m := range w.liveStreams() {
		m.Stream.State = streamExpired // nobody will stop it any more
	}
	return w, nil
}

// touch asks for the workspace to be written soon. It never blocks.
func (s *Server) touch() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// keepState writes the workspace after changes until the Server closes.
func (s *Server) keepState() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.dirty:
		}
		s.mu.Lock()
		err := s.saveState()
		s.mu.Unlock()
		if err != nil {
			s.log.Error("the workspace could not be saved", zap.Error(err))
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(saveDelay):
		}
	}
}

// saveState replaces the state file. It holds tokens, so nobody else may read it.
func (s *Server) saveState() error {
	path := s.opts.StateFile
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(s.ws)
	if err != nil {
		return fmt.Errorf("encode workspace: %w", err)
	}
	if err := writeFile(path, raw); err != nil {
		return fmt.Errorf("save workspace: %w", err)
	}
	return nil
}

// writeFile replaces a file in one step, so that a crash leaves the old or the new.
func writeFile(path string, raw []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// filesFolder is where the contents of uploaded files lie.
func filesFolder(stateFile string) string { return stateFile + ".files" }
