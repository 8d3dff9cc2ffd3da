package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/postgres"
)

// network is a bridge of this machine, to which others are plugged: a network namespace
// each, in which a Linux user of its own runs what runs there.
type network struct {
	t       *testing.T
	dir     string
	bridge  string
	subnet  string // its first three numbers
	program string // the bot, where every user may run it
	cli     string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces and other users take root")
	}
	dir, err := os.MkdirTemp("", "deckhand-network-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cli, err := filepath.EvalSymlinks(needtest.Claude(t))
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, dir: dir, bridge: fmt.Sprintf("dkh%d", os.Getpid()), subnet: fmt.Sprintf("10.213.%d", os.Getpid()%254), program: filepath.Join(dir, "bot"), cli: filepath.Join(dir, "claude")}
	n.must("cp", "--", self, n.program)
	n.must("cp", "--", cli, n.cli)
	n.must("ip", "link", "add", n.bridge, "type", "bridge")
	t.Cleanup(func() { n.must("ip", "link", "del", n.bridge) })
	n.must("ip", "addr", "add", n.subnet+".1/24", "dev", n.bridge)
	n.must("ip", "link", "set", n.bridge, "up")
	return n
}

func (n *network) must(name string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil { //nolint:noctx // it is over at once
		n.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// host is a machine on the network.
type host struct {
	*network
	name, address string
	uid, gid      int
	cable         string // this machine's end of it
	wires         []*wire
}

// host plugs a machine in; number is the last of its address.
func (n *network) host(number, uid, gid int) *host {
	n.t.Helper()
	h := &host{network: n, name: fmt.Sprintf("%s-%d", n.bridge, number), address: fmt.Sprintf("%s.%d", n.subnet, number), uid: uid, gid: gid, cable: fmt.Sprintf("%s.%d", n.bridge, number)}
	n.must("ip", "netns", "add", h.name)
	n.t.Cleanup(func() { n.must("ip", "netns", "del", h.name) })
	n.must("ip", "link", "add", h.cable, "type", "veth", "peer", "name", "eth0", "netns", h.name)
	n.must("ip", "link", "set", h.cable, "master", n.bridge, "up")
	n.must("ip", "-n", h.name, "addr", "add", h.address+"/24", "dev", "eth0")
	n.must("ip", "-n", h.name, "link", "set", "lo", "up")
	n.must("ip", "-n", h.name, "link", "set", "eth0", "up")
	return h
}

// inside is a command that runs another one there, which ends with the thread that has
// started it.
func (h *host) inside() []string {
	return []string{"nsenter", "--net=/run/netns/" + h.name, "setpriv", fmt.Sprint("--reuid=", h.uid), fmt.Sprint("--regid=", h.gid), "--clear-groups", "--pdeathsig=KILL", "--"}
}

// unplug has nothing come to the machine or from it, and tells nobody.
func (h *host) unplug() {
	h.must("ip", "link", "set", h.cable, "down")
	for _, w := range h.wires {
		w.part()
	}
}

func (h *host) plug() {
	h.must("ip", "link", "set", h.cable, "up")
	for _, w := range h.wires {
		w.heal()
	}
}

// offers has what listens at an address of our loopback listen at the same of the
// machine's, for as long as it is plugged in.
func (h *host) offers(address string) {
	h.t.Helper()
	type result struct {
		net.Listener
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // which is never given back: it is another machine's
		ns, err := os.Open("/run/netns/" + h.name)
		if err != nil {
			done <- result{err: err}
			return
		}
		defer ns.Close() //nolint:errcheck // nothing was written
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		l, err := (&net.ListenConfig{}).Listen(h.t.Context(), "tcp", address)
		done <- result{l, err}
	}()
	r := <-done
	if r.err != nil {
		h.t.Fatal(r.err)
	}
	h.wires = append(h.wires, newWireFrom(h.t, r.Listener, func() (string, string) { return "tcp", address }))
}

// replica is one of the bots, on a machine of its own, with a user, a folder and a copy of
// the project that only this user can reach.
func (n *network) replica(c *chaos, number int, database string) (*chaosReplica, *host) {
	n.t.Helper()
	h := n.host(20+number, 41001+number, 41001+number)
	for _, there := range []string{c.URL, c.model} {
		u, err := url.Parse(there)
		if err != nil {
			n.t.Fatal(err)
		}
		h.offers(u.Host)
	}
	r := c.newReplica(number, n.cli)
	r.program, r.inside = n.program, h.inside()
	r.ready = "http://" + h.address + ":8080/readyz"
	config := filepath.Join(r.dir, "deckhand.yaml")
	r.env = append(r.env, "DATABASE_URL="+database, "DECKHAND_LISTEN="+h.address+":8080", "DECKHAND_CONFIG="+config)
	b, err := os.ReadFile(filepath.Join(c.dir, "deckhand.yaml"))
	if err == nil {
		err = os.WriteFile(config, []byte(strings.ReplaceAll(string(b), filepath.Join(c.dir, "shop"), filepath.Join(r.dir, "shop"))), 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.must("cp", "-r", filepath.Join(c.dir, "shop"), filepath.Join(c.dir, "tree"), r.dir)
	n.must("chown", "-R", fmt.Sprintf("%d:%d", h.uid, h.gid), r.dir)
	n.must("chmod", "700", r.dir)
	return r, h
}

// server is PostgreSQL on a machine of its own.
type server struct {
	*host
	bin, data string
	socket    string // the folder that it is in
	cmd       *exec.Cmd
}

func (n *network) server(number int) *server {
	n.t.Helper()
	bin, err := postgres.Find()
	if err != nil {
		needtest.Missing(n.t, err.Error())
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		n.t.Skip("PostgreSQL does not run as root, and there is no user postgres")
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	s := &server{host: n.host(number, uid, gid), bin: bin}
	s.data, s.socket = filepath.Join(n.dir, s.name), filepath.Join(n.dir, s.name+".socket")
	n.must("install", "-d", "-o", who.Uid, "-g", who.Gid, s.socket)
	n.t.Cleanup(s.kill)
	return s
}

// does runs a program of PostgreSQL's there.
func (s *server) does(program string, args ...string) {
	s.t.Helper()
	words := append(s.inside(), filepath.Join(s.bin, program))
	words = append(words, args...)
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // it ends by itself
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// empty gives it an empty data folder.
func (s *server) empty() {
	s.t.Helper()
	s.must("rm", "-rf", s.data)
	s.must("install", "-d", "-m", "700", "-o", fmt.Sprint(s.uid), "-g", fmt.Sprint(s.gid), s.data)
}

// begins makes it a primary with an empty database.
func (s *server) begins() {
	s.t.Helper()
	s.empty()
	s.does("initdb", "-D", s.data, "-U", "deckhand", "--auth=trust", "--no-sync")
	hba, err := os.OpenFile(filepath.Join(s.data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(hba, "host all,replication all %s.0/24 trust\n", s.subnet)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	_ = hba.Close()
	s.runs()
	s.does("createdb", "-h", s.address, "-U", "deckhand", "deckhand")
}

// follows makes it a standby of another one.
func (s *server) follows(primary *server) {
	s.t.Helper()
	s.empty()
	s.does("pg_basebackup", "-D", s.data, "-R", "-h", primary.address, "-U", "deckhand", "--checkpoint=fast", "--no-sync")
	s.runs()
}

// runs starts the server, and returns when it takes connections.
func (s *server) runs() {
	s.t.Helper()
	log, err := os.OpenFile(s.data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the server has its own
	words := append(s.inside(), filepath.Join(s.bin, "postgres"), "-D", s.data, "-c", "listen_addresses="+s.address, "-c", "unix_socket_directories="+s.socket, "-c", "fsync=off")
	started := make(chan error)
	go func() {
		runtime.LockOSThread()                       // the kernel ends the server with the thread that started it
		s.cmd = exec.Command(words[0], words[1:]...) //nolint:noctx // it is killed
		s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = "/", log, log, &syscall.SysProcAttr{Setpgid: true}
		cmd := s.cmd
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	(&world{t: s.t}).eventually("PostgreSQL to take connections", func() bool {
		return exec.Command(filepath.Join(s.bin, "pg_isready"), "-h", s.socket).Run() == nil //nolint:noctx // it is over at once
	})
}

// kill ends the server with all of its processes, as a machine that loses its power.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	pids := descendants(s.cmd.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.cmd = nil
	(&world{t: s.t}).assertGone(pids)
}

// promote makes a standby the primary.
func (s *server) promote() {
	s.t.Helper()
	s.does("pg_ctl", "promote", "-w", "-D", s.data)
}

// asks is what a query of one value answers.
func (s *server) asks(sql string) string {
	s.t.Helper()
	words := append(s.inside(), filepath.Join(s.bin, "psql"), "-h", s.socket, "-U", "deckhand", "-Atc", sql, "deckhand")
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // it ends by itself
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
