#!/bin/sh
# Makes the files that compose.yaml reads from secrets/: passwords of Redis and PostgreSQL, the URLs with them, and an API key that may do everything,
# which is printed once. Existing files stay.
set -eu
dir=${1:-$(dirname "$0")/secrets}
[ ! -e "$dir" ] || { echo "$dir is there already" >&2; exit 1; }
umask 022 # the user of the containers reads the files; the folder keeps others out
mkdir -p "$dir"
chmod 700 "$dir"

hex() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }

redis=$(hex 24)
postgres=$(hex 24)
printf 'requirepass %s\n' "$redis" >"$dir/redis.conf"
printf 'redis://:%s@redis:6379\n' "$redis" >"$dir/redis-url"
printf '%s' "$postgres" >"$dir/postgres-password"
printf 'postgres://redelayed:%s@postgres/redelayed\n' "$postgres" >"$dir/journal-url"

id=$(hex 6)
key=rdk_${id}_$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')
hash=$(printf '%s' "$key" | sha256sum | cut -d ' ' -f 1)
printf '%s %s push,consume,read,admin *\n' "$id" "$hash" >"$dir/api-keys"
echo "The API key (it is shown once; its hash is in $dir/api-keys):"
echo "  $key"
