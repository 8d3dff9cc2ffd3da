package policy

import (
	"bufio"
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fact is what strace saw a command do, successfully: read, write, exec a path, or
// connect to an address.
type fact struct{ Kind, Path string }

// traced are the calls of the system that open, change, run or reach something.
const traced = "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,chmod,fchmodat," +
	"truncate,utimensat,mknod,mknodat,chown,lchown,fchownat,execve,execveat,connect,sendto,sendmsg,chdir,fchdir,fork,vfork,clone,clone3"

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<(.*?)>)?( .*)?$`)
	traceString = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	traceFolder = regexp.MustCompile(`(?:AT_FDCWD|\d+)<([^>]*)>, ("(?:[^"\\]|\\.)*")`)
)

// tracer reads what strace wrote. It knows where every process stands.
type tracer struct {
	cwd     map[string]string
	start   string
	pending map[string]string
	facts   []fact
}

// readTrace reads strace's lines; start is the folder that the first process stands in.
// Links are resolved as they are when it is called.
func readTrace(text []byte, start string) []fact {
	t := &tracer{cwd: map[string]string{}, start: start, pending: map[string]string{}}
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		pid, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimLeft(rest, " ")
		if head, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			t.pending[pid] = head
			continue
		}
		if strings.HasPrefix(rest, "<... ") {
			_, tail, _ := strings.Cut(rest, " resumed>")
			rest = t.pending[pid] + tail
			delete(t.pending, pid)
		}
		if m := traceLine.FindStringSubmatch(pid + " " + rest); m != nil {
			t.call(pid, m[2], m[3], m[4], m[5])
		}
	}
	slices.SortFunc(t.facts, func(a, b fact) int { return strings.Compare(a.Kind+a.Path, b.Kind+b.Path) })
	return slices.Compact(t.facts)
}

func (t *tracer) at(pid string) string {
	if d := t.cwd[pid]; d != "" {
		return d
	}
	return t.start
}

func (t *tracer) add(kind, path string) { t.facts = append(t.facts, fact{kind, path}) }

// call adds what one call did.
func (t *tracer) call(pid, name, args, result, file string) {
	switch name {
	case "connect", "sendto", "sendmsg":
		if strings.Contains(args, "sa_family=AF_INET") && !strings.Contains(args, "sin_port=htons(0)") && !strings.Contains(args, "sin6_port=htons(0)") {
			t.add("connect", args[strings.Index(args, "{"):]) // tried is enough
		}
		return
	}
	if strings.HasPrefix(result, "-") {
		return
	}
	switch name {
	case "fork", "vfork", "clone", "clone3":
		t.cwd[result] = t.at(pid)
	case "chdir":
		t.cwd[pid] = t.paths(pid, args)[0]
	case "fchdir":
		if _, dir, ok := strings.Cut(strings.TrimSuffix(args, ">"), "<"); ok {
			t.cwd[pid] = dir
		}
	case "open", "openat", "openat2":
		flags := args[strings.LastIndex(args, `"`)+1:]
		switch {
		case strings.Contains(flags, "O_WRONLY"), strings.Contains(flags, "O_RDWR"), strings.Contains(flags, "O_CREAT"), strings.Contains(flags, "O_TRUNC"):
			t.add("write", file)
		case strings.Contains(flags, "O_DIRECTORY"), strings.Contains(flags, "O_PATH"):
		default:
			t.add("read", file)
		}
	case "execve", "execveat":
		t.add("exec", t.paths(pid, args)[0])
	case "symlink", "symlinkat": // what it points to is no path of its own
		p := t.paths(pid, args)
		t.add("write", p[len(p)-1])
	default:
		for _, p := range t.paths(pid, args) {
			t.add("write", p)
		}
	}
}

// paths are the paths among the arguments of a call, absolute, their folders' links
// resolved.
func (t *tracer) paths(pid, args string) []string {
	dirs := map[string]string{}
	for _, m := range traceFolder.FindAllStringSubmatch(args, -1) {
		dirs[m[2]] = m[1]
	}
	var out []string
	for _, m := range traceString.FindAllStringSubmatch(args, -1) {
		p := m[1]
		if !filepath.IsAbs(p) {
			dir := dirs[m[0]]
			if dir == "" {
				dir = t.at(pid)
			}
			p = dir + "/" + p
		}
		out = append(out, resolved(p))
	}
	if len(out) == 0 {
		out = append(out, t.at(pid))
	}
	return out
}

// resolved is a path with the links of its folder resolved, as far as they exist.
func resolved(p string) string {
	dir, base := filepath.Split(p)
	if d, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(d, base)
	}
	return filepath.Clean(p)
}
