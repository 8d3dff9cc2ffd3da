//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const patience = 2 * time.Second

// dial NAME NETWORK ADDRESS says NAME to a listener of the harness.
func dial(args []string) error {
	conn, err := net.DialTimeout(args[1], args[2], patience)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(conn, args[0]); err != nil {
		return err
	}
	return conn.Close()
}

// reach WHAT NETWORK ADDRESS finds out whether somebody listens there.
func reach(args []string) error {
	conn, err := net.DialTimeout(args[1], args[2], patience)
	if err != nil {
		return err
	}
	fmt.Println("BREACH: connected to", args[0])
	return conn.Close()
}

// raw NETWORK ADDRESS sends its standard input and shows the answer.
func raw(args []string) error {
	conn, err := net.DialTimeout(args[0], args[1], patience)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the answer was read
	if _, err := io.Copy(conn, os.Stdin); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, io.LimitReader(conn, 1<<20))
	return err
}

// interfaces lists the network's interfaces, over netlink.
func interfaces([]string) error {
	all, err := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			fmt.Println("BREACH: the interface", i.Name)
		}
	}
	return err
}

// route ADDRESS… finds out whether a datagram to the address would have a way. None is sent.
func route(args []string) error {
	for _, a := range args {
		conn, err := net.Dial("udp", a)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("BREACH: a way to", a)
		_ = conn.Close()
	}
	return nil
}

// families are kinds of sockets that no session needs.
var families = map[string][3]int{
	"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0x0300}, "icmp": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	"raw6": {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	"alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "xdp": {unix.AF_XDP, unix.SOCK_RAW, 0}, "key": {unix.AF_KEY, unix.SOCK_RAW, 2},
	"bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 1}, "can": {unix.AF_CAN, unix.SOCK_RAW, 1}, "tipc": {unix.AF_TIPC, unix.SOCK_RDM, 0},
}
