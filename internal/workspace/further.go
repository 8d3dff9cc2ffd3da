package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Repositories is the folder of a thread's working tree in which the working trees of the project's further
// repositories lie. Git of the thread's own ignores it.
const Repositories = ".deckhand/repos"

// notLeft are ignored places of the bot's own: what is in them is saved by itself, or is made again.
var notLeft = []string{".deckhand", ".deckhand/.gitignore", Repositories}

// Within is the folder of a further repository's working tree in a thread's folder; of an empty name that folder itself.
func Within(dir, further string) string {
	if further == "" {
		return dir
	}
	return filepath.Join(dir, Repositories, further)
}

// key names a repository among those of all projects. No project's name has a dot.
func (p Project) key() string {
	if p.Further == "" {
		return p.Name
	}
	return p.Name + "." + p.Further
}

// repository is what people call it.
func (p Project) repository() string {
	if p.Further == "" {
		return "the repository of project " + p.Name
	}
	return "the repository " + p.Further + " of project " + p.Name
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// plain refuses a further repository whose folder, or one above it in the thread's own, is a link or a file: a session
// may have put it there before the project had the repository, and it may lead into another thread's folder.
func (p Project) plain(dir string) error {
	own, ok := strings.CutSuffix(dir, "/"+Within("", p.Further))
	if p.Further == "" || !ok {
		return nil
	}
	at := own
	for name := range strings.SplitSeq(Within("", p.Further), "/") {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !info.IsDir() {
			return fmt.Errorf("%s has to lie in %s, which is no folder of this thread's: remove that", p.repository(), at)
		}
	}
	return nil
}

// wrote remembers the settings of a further repository's working tree that was made.
func (k *Keeper) wrote(t Thread, p Project, dir string) error {
	if p.Further == "" {
		return nil
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	if err != nil {
		return err
	}
	return writeWhole(k.savedIndex(t, p)+configSuffix, string(config))
}

const configSuffix = ".config"

// Obeys reports whether git in the thread's folder of a further repository obeys the settings that Keeper has written,
// and no others.
func (k *Keeper) Obeys(t Thread, p Project) bool {
	wrote, err := os.ReadFile(k.savedIndex(t, p) + configSuffix)
	now, err2 := regular(filepath.Join(t.Dir, ".git/config"))
	more, err3 := regular(filepath.Join(t.Dir, ".git/config.worktree"))
	return err == nil && err2 == nil && (err3 == nil || errors.Is(err3, fs.ErrNotExist)) && p.plain(t.Dir) == nil && now == string(wrote) && more == ""
}

// regular reads a file that is none but a small, regular one.
func regular(name string) (string, error) {
	info, err := os.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 1<<20) {
		err = errors.New("it is not a small file")
	}
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(name)
	return string(b), err
}
