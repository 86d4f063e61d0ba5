#!/usr/bin/env bash
# Runs a command beside a PostgreSQL and a PgBouncer of its own: postgres.sh COMMAND [ARGUMENT]…
#
# The command finds TANDEM_TEST_POSTGRES, and TANDEM_TEST_PGBOUNCER for another database of the same server, behind PgBouncer in transaction
# mode. Both are addresses of the role `tandem`, which owns nothing and may create schemas in these two databases. Texts sort by English
# rules there, so that a query that relies on the order of bytes has to say so.
#
# TANDEM_TEST_POSTGRES_CRASH is a program that kills PostgreSQL and starts it again.
#
# Both servers listen on 127.0.0.1 only, on free ports. They end with this script, also if it is killed: a process in a session of its own
# then ends them and removes their folder.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: postgres.sh COMMAND [ARGUMENT]…" >&2; exit 2; }
# This script ends with whoever started it.
if [ "${TANDEM_TEST_BOUND:-}" != "$$" ]; then TANDEM_TEST_BOUND=$$ exec setpriv --pdeathsig TERM "$0" "$@"; fi
unset TANDEM_TEST_BOUND "${!PG@}"
here="$(cd "$(dirname "$0")/../.." && pwd)"

binaries=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
pgbouncer=$(PATH="$PATH:/usr/sbin" command -v pgbouncer || true)
[ -x "$binaries/initdb" ] || { echo "postgres.sh: PostgreSQL is missing: run \`make test-stores\`" >&2; exit 1; }
[ -n "$pgbouncer" ] || { echo "postgres.sh: PgBouncer is missing: run \`make test-stores\`" >&2; exit 1; }

# Neither server runs as root. An unprivileged user may not reach a checkout of root's.
user=
folder="$here/.build/postgres/$$"
if [ "$(id -u)" = 0 ]; then
    user=$(getent passwd postgres >/dev/null && echo postgres || echo nobody)
    folder=
elif [ "${#folder}" -gt 80 ]; then
    # The path of a Unix socket has at most 107 bytes.
    folder=
fi
if [ -n "$folder" ]; then
    mkdir -p "$folder"
else
    folder=$(mktemp -d --tmpdir tandem-postgres.XXXXXX)
    if [ "${#folder}" -gt 80 ]; then
        rmdir "$folder"
        echo "postgres.sh: $folder is too long for a Unix socket: set TMPDIR to a folder with a shorter path" >&2
        exit 1
    fi
    if [ -n "$user" ]; then chown "$user:" "$folder"; fi
fi
chmod 700 "$folder"
echo "postgres.sh: $("$binaries/postgres" --version) in $folder${user:+ as $user}" >&2

# Runs a program as the servers' user, in their folder.
as_server() {
    local switch=()
    if [ -n "$user" ]; then
        switch=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --)
    fi
    (
        # The cleaner would wait for a server that kept this.
        if [ -n "${script:-}" ]; then exec {script}>&-; fi
        cd "$folder" && exec "${switch[@]}" "$@"
    )
}

# Waits for the end of this script. Ends its command, if that still runs, and both servers, and removes the folder.
clean_up() {
    trap '' INT TERM HUP
    read -r _
    local pid
    if pid=$(cat "$folder/command.pid" 2>/dev/null); then
        # The command has a process group of its own.
        kill -TERM -- "-$pid" 2>/dev/null
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            kill -0 -- "-$pid" 2>/dev/null || break
            sleep 0.2
        done
        kill -KILL -- "-$pid" 2>/dev/null
    fi
    if pid=$(cat "$folder/pgbouncer.pid" 2>/dev/null); then kill -KILL "$pid" 2>/dev/null; fi
    if [ -f "$folder/data/postmaster.pid" ]; then as_server "$binaries/pg_ctl" stop --silent --mode immediate --pgdata "$folder/data"; fi
    rm -rf "$folder"
    rmdir "$here/.build/postgres" 2>/dev/null
    return 0
}

# Nobody but this script holds the other end of the cleaner's pipe, which is closed however the script ends.
export here folder user binaries
export -f as_server clean_up
exec {script}> >(exec setsid bash -c clean_up)
cleaner=$!
export -n here folder user binaries
export -nf as_server clean_up
finish() {
    local code=$?
    trap '' INT TERM HUP
    exec {script}>&-
    wait "$cleaner" || true
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

free_port() {
    local port
    while true; do
        # Below the ports that Linux gives to clients.
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# Prints a server's log and ends the script.
give_up() {
    echo "postgres.sh: $1 does not start" >&2
    cat "$2" >&2 || true
    exit 1
}

password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
as_server "$binaries/initdb" --pgdata "$folder/data" --encoding UTF8 --locale C.UTF-8 --locale-provider icu --icu-locale en-US \
    --auth-local peer --auth-host scram-sha-256 --no-sync --no-instructions >"$folder/initdb.log" ||
    give_up initdb "$folder/initdb.log"
for attempt in 1 2 3 4 5; do
    port=$(free_port)
    cat >"$folder/data/postgresql.auto.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$folder'
unix_socket_permissions = 0700
fsync = on
END
    if as_server "$binaries/pg_ctl" start --silent --wait --pgdata "$folder/data" --log "$folder/postgres.log"; then break; fi
    # Somebody may have taken the port.
    [ "$attempt" -lt 5 ] || give_up PostgreSQL "$folder/postgres.log"
done
as_server "$binaries/psql" --quiet --no-psqlrc --host "$folder" --port "$port" --dbname postgres --set ON_ERROR_STOP=1 <<END
CREATE ROLE tandem LOGIN PASSWORD '$password';
CREATE DATABASE tandem;
CREATE DATABASE tandem_pooled;
GRANT CREATE ON DATABASE tandem TO tandem;
GRANT CREATE ON DATABASE tandem_pooled TO tandem;
END

printf '"tandem" "%s"\n' "$password" >"$folder/users.txt"
for attempt in 1 2 3 4 5; do
    pooled_port=$(free_port)
    cat >"$folder/pgbouncer.ini" <<END
[databases]
* = host=127.0.0.1 port=$port
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $pooled_port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $folder/users.txt
pool_mode = transaction
max_client_conn = 200
default_pool_size = 20
logfile = $folder/pgbouncer.log
pidfile = $folder/pgbouncer.pid
END
    if [ -n "$user" ]; then chown "$user:" "$folder/users.txt" "$folder/pgbouncer.ini"; fi
    if as_server "$pgbouncer" --quiet --daemon "$folder/pgbouncer.ini"; then break; fi
    [ "$attempt" -lt 5 ] || give_up PgBouncer "$folder/pgbouncer.log"
done

# Ends the server without a shutdown, as a crash does, and starts it again.
cat >"$folder/crash" <<END
#!/usr/bin/env bash
cd '$folder'
exec ${user:+setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --} \
    '$binaries/pg_ctl' restart --silent --wait --mode immediate --pgdata '$folder/data' --log '$folder/postgres.log'
END
chmod 755 "$folder/crash"
export TANDEM_TEST_POSTGRES_CRASH="$folder/crash"
export TANDEM_TEST_POSTGRES="postgres://tandem:$password@127.0.0.1:$port/tandem"
export TANDEM_TEST_PGBOUNCER="postgres://tandem:$password@127.0.0.1:$pooled_port/tandem_pooled"
for address in "$TANDEM_TEST_POSTGRES" "$TANDEM_TEST_PGBOUNCER"; do
    # PgBouncer listens a moment after it has gone into the background.
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        if "$binaries/psql" --quiet --no-psqlrc --dbname "$address" --command 'SELECT' >"$folder/psql.log" 2>&1; then break; fi
        [ "$attempt" -lt 10 ] || { cat "$folder/psql.log" >&2; give_up PgBouncer "$folder/pgbouncer.log"; }
        sleep 0.5
    done
done

set -m
"$@" {script}>&- <&0 &
command=$!
set +m
echo "$command" >"$folder/command.pid"
code=0
wait "$command" || code=$?
rm "$folder/command.pid"
exit "$code"
