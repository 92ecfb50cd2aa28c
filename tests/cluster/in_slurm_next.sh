#!/bin/bash
# Runs a command where Slurm is a newer one than this machine's: in a tree of Debian 13 (Slurm
# 24.11), with this machine's Python, /proc, /sys, /dev and /tmp in it. The tree is made at first
# use (a minute or three, 0.8 GB) and lies outside the repository; remove the folder to be rid of it.
#
#   bash tests/cluster/in_slurm_next.sh .venv/bin/pytest -m slurm
#
# With HPC_TRAIN_DEBIAN=forky in the environment: what will be Debian 14 (Slurm 26.05).
set -euo pipefail

debian=${HPC_TRAIN_DEBIAN:-trixie}
tree=${XDG_CACHE_HOME:-$HOME/.cache}/hpc-train/slurm-next
[ "$debian" = trixie ] || tree=$tree-$debian
tree=${HPC_TRAIN_SLURM_NEXT:-$tree}
# The mirror that this machine's apt uses.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'ShortDesc: Packages' | head -n 1)
packages=(
    slurm-wlm slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins
    slurm-wlm-mysql-plugin munge mariadb-server iproute2 nftables infiniband-diags libibverbs1
    openssh-client openssh-server bindfs procps git libgomp1 ca-certificates
    python3 # for the libraries that this machine's Python is linked with
)

if [ "$(id -u)" -ne 0 ] || ! command -v dpkg >/dev/null; then
    echo "A newer Slurm is tried by root on a Debian-like system; nothing was tested."
    exit 0
fi
make_tree() {
    command -v debootstrap >/dev/null || apt-get install -qq -y --no-install-recommends debootstrap
    rm -rf "$tree.part"
    mkdir -p "$tree.part"
    local list
    list=$(IFS=,; echo "${packages[*]}")
    # By the script of Debian's rolling release: an older debootstrap knows no newer names.
    debootstrap --variant=minbase --include="$list" "$debian" "$tree.part" "$mirror" \
        /usr/share/debootstrap/scripts/sid && older_libmariadb && mv "$tree.part" "$tree"
}
# slurmdbd ends at its first query with libmariadb 11.8.9 ("Number of columns in result"), which Debian
# 13 has since its 13.8, and not with Debian 12's 10.11.
older_libmariadb() {
    chroot "$tree.part" bash -euc '
        echo "deb $0 bookworm main" >/etc/apt/older.list
        apt() { apt-get -o Dir::Etc::SourceList=older.list -o Dir::Etc::SourceParts=- "$@"; }
        cd /tmp
        apt update
        apt download libmariadb3/bookworm
        dpkg --extract libmariadb3_*.deb /' "$mirror"
}
if [ ! -d "$tree" ]; then
    echo "Making a Debian $debian with its Slurm in $tree"
    log=$(mktemp)
    make_tree >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
    rm -f "$log"
fi

# What the command sees of this machine, beside the system's own folders: the repository, and all
# that its Python is made of.
python=${PYTHON:-.venv/bin/python}
shared=$("$python" -c '
import os, sys
paths = [os.getcwd(), sys.prefix, sys.base_prefix, *filter(os.path.isdir, sys.path)]
if sys.base_prefix == "/usr":  # no more of /usr than that
    paths += [os.path.realpath(sys.executable)]
    paths = [path for path in paths if path != "/usr"]
print("\n".join(dict.fromkeys(map(os.path.realpath, paths))))')

# The tree becomes the root of a mount table of its own, and not by chroot: who enters a node
# with nsenter gets the root of its mount table (setns(2)).
export tree shared
exec unshare --mount --propagation slave bash -c '
set -euo pipefail
here=$PWD
mount --bind "$tree" "$tree"
for folder in /proc /sys /dev /tmp; do mount --rbind "$folder" "$tree$folder"; done
while read -r path; do
    if [ -d "$path" ]; then mkdir -p "$tree$path"; else touch "$tree$path"; fi
    mount --rbind "$path" "$tree$path"
done <<<"$shared"
mkdir -p "$tree/run/sshd" "$tree/mnt/outside"
cd "$tree"
pivot_root . mnt/outside
cd "$here"
umount --lazy /mnt/outside
unset tree shared
exec "$@"' bash "$@"
