#!/bin/bash
# Installs what the test cluster needs (Debian's packages), when it is missing and we are root.
# Says nothing when all is there. Starts no service, and stops none that was running before.
set -euo pipefail

packages=(
    slurm-wlm slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins
    slurm-wlm-mysql-plugin munge mariadb-server iproute2 nftables infiniband-diags libibverbs1
    openssh-client openssh-server bindfs
)

if ! command -v dpkg-query >/dev/null; then
    echo "The tests with a real Slurm need a Debian-like system; they will be skipped here."
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "The tests with a real Slurm will be skipped: they need root and the Debian packages"
    echo "    ${missing[*]}"
    exit 0
fi

# Debian starts what it installs. A policy of "no" (101, policy-rc.d's manual page) holds it back.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

echo "Installing for the tests with a real Slurm: ${missing[*]}"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -qq -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "Installing failed, so the tests with a real Slurm will be skipped." >&2
    exit 1
fi
rm -f "$log"
