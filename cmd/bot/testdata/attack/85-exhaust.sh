# As much as the machine bears. The bot has to be as healthy as before.

## memory (inside)
"$A" hog memory
## processes (inside)
for i in $(seq 300); do sleep 2 & done 2>/dev/null; wait
## disk-of-tmp (inside)
"$A" hog disk /tmp/big
## disk-of-the-workspace (inside)
"$A" hog disk "$WS/big"
## disk-of-the-home (inside)
"$A" hog disk "$HOME/big"
## files (inside)
"$A" hog files "$WS/many"
## open-files (inside)
"$A" hog descriptors
## noise (inside)
head -c 50000000 /dev/zero | tr '\0' 'x'
## deep-folders (inside)
d=$WS/deep; for i in $(seq 200); do d=$d/dddddddddddddddd; done; mkdir -p "$d"; rm -rf "$WS/deep"
