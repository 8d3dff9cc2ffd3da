# The network. The listeners are the harness's, on this machine's loopback.

## tcp4
"$A" dial tcp4 tcp "127.0.0.1:$TCP"
## tcp6
"$A" dial tcp6 tcp "[::1]:$TCP6"
## mapped
"$A" dial mapped tcp6 "[::ffff:127.0.0.1]:$TCP"
## any
"$A" dial any tcp "0.0.0.0:$TCP"
## other-loopback
"$A" dial loopback2 tcp "127.1.2.3:$TCP"
## dev-tcp
echo devtcp >"/dev/tcp/127.0.0.1/$TCP"
## udp
"$A" dial udp udp "127.0.0.1:$UDP"; sleep 0.2
## dns
printf '\0\1\1\0\0\1\0\0\0\0\0\0\6canary\3lan\0\0\1\0\1' | "$A" raw udp "127.0.0.1:$UDP"
## name
"$A" dial name tcp "localhost:$TCP"
## abstract-socket
"$A" dial abstract unix "@$ABSTRACT"
## unix-socket
"$A" dial unix unix "$OUT/socket"
## unix-datagrams
"$A" dial unixgram unixgram "$OUT/datagrams"
## link-to-a-socket
ln -sf "$OUT/socket" s; "$A" dial linked unix "$PWD/s"; ln -sf "$ANTHROPIC_UNIX_SOCKET" s; rm -f s
## playground
"$A" reach playground tcp "$PLAY"
## model
"$A" reach model tcp "$MODEL"
## postgres
"$A" reach postgres tcp "$PG"
## postgres-by-socket (inside)
for s in /var/run/postgresql/.s.PGSQL.* /tmp/.s.PGSQL.* /run/postgresql/.s.PGSQL.*; do "$A" reach "$s" unix "$s"; done
## engine (inside)
for s in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/user/0/podman/podman.sock "$ENGINE"; do "$A" reach "$s" unix "$s"; done
## bus (inside)
for s in /run/dbus/system_bus_socket /run/systemd/private /run/systemd/notify /run/user/0/bus @/org/freedesktop/systemd1 @/tmp/.X11-unix/X0 /run/udev/control; do "$A" reach "$s" unix "$s"; done
## every-socket (inside)
"$A" sockets /
## interfaces (inside)
"$A" links
## way-to-metadata (inside)
"$A" route 169.254.169.254:80 '[fd00:ec2::254]:80' 192.0.2.1:53 '[2001:db8::1]:53' 255.255.255.255:9 224.0.0.251:5353
## proc-net (inside)
tail -n +2 /proc/net/route | grep . && echo 'BREACH: a route'; grep -e "$ABSTRACT" -e "$OUT" /proc/net/unix && echo 'BREACH: the sockets of the host'
## families (inside)
"$A" door socket-packet socket-icmp socket-raw6 socket-vsock socket-alg socket-xdp socket-key socket-bluetooth socket-can socket-tipc
## git-fetches
git fetch "git://127.0.0.1:$TCP/x"; git ls-remote "http://127.0.0.1:$TCP/x"
## git-file-protocol
git ls-remote "file://$OTHER" && git fetch -q "$OTHER" HEAD && git show FETCH_HEAD:secret.txt
## listens-outside (inside)
"$A" reach nothing tcp "127.0.0.1:1"; (exec 3<>"/dev/udp/127.0.0.1/$UDP" && echo devudp >&3)
