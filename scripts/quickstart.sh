#!/usr/bin/env bash
# From a bare Debian 12 to a gateway that runs code: installs what is missing (and says what), builds, starts the gateway
# with examples/local.yaml, shows with the acceptance that sessions hold, and leaves it running with lines to try.
#   scripts/quickstart.sh [--once]     --once: ends the gateway after the acceptance
# In the environment:
#   PORT=4001                          another port than 4000
#   UPSTREAM=http://127.0.0.1:11434/v1 MODEL=qwen3 [UPSTREAM_KEY=…]     a real model instead of the mock one
# Started by root, the build is installed below /opt/sandgate and runs as the system user sandgate.
set -euo pipefail
umask 022
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
SECONDS=0

once=
case ${1-} in
--once) once=1 ;;
'') ;;
*) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//' && exit 2 ;;
esac
port=${PORT:-4000}
[[ $port =~ ^[0-9]+$ ]] || fail "PORT must be a number, not '$port'"
[[ -z ${UPSTREAM-} || -n ${MODEL-} ]] || fail "with UPSTREAM, say MODEL too: the name of a model there"
[[ -z ${MODEL-} || -n ${UPSTREAM-} ]] || fail "with MODEL, say UPSTREAM too: where its API is, as http://127.0.0.1:11434/v1"
model=${MODEL:-mock}
url=http://127.0.0.1:$port

work=$(mktemp -d)
chmod 711 "$work" # the gateway's user reads its configuration there
gateway=
ended_with=0 # the gateway
gateway_stop() { # one SIGTERM: it finishes what is in progress and deletes its containers
    [[ -n $gateway ]] || return 0
    kill -TERM "$gateway" 2>/dev/null || true
    wait "$gateway" || ended_with=$?
    gateway=
}
clean_up() {
    local status=$?
    trap '' INT TERM HUP
    gateway_stop
    rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'say ""; say "Stopping: the gateway deletes its containers …"; exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
check_port() {
    port_is_free || fail "port $port at 127.0.0.1 is in use by another program: end it, or choose another: PORT=$((port + 1)) $0"
}

check_upstream() { # asked by a bare connection, as any answer of it will do
    local rest=${UPSTREAM#*://} host upstream_port=80
    [[ $UPSTREAM == https://* ]] && upstream_port=443
    rest=${rest%%[/?#]*}
    rest=${rest##*@}
    host=$rest
    if [[ $rest =~ ^(.*):([0-9]+)$ ]]; then
        host=${BASH_REMATCH[1]} upstream_port=${BASH_REMATCH[2]}
    fi
    host=${host#[} host=${host%]}
    timeout 10 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$upstream_port" 2>/dev/null ||
        fail "nobody answers at $host port $upstream_port, where UPSTREAM points: start the model server, or correct UPSTREAM"
}

install_build() { # sets `binary` and `examples`
    if [[ $(id -u) != 0 ]]; then
        binary=$project/build/bin/sandgate examples=$project/examples
        return
    fi
    if ! getent passwd sandgate >/dev/null; then
        say "Making the system user 'sandgate' …"
        run_quietly 'making the user sandgate' useradd --system --user-group --no-create-home \
            --home-dir /nonexistent --shell /usr/sbin/nologin sandgate
    fi
    say "Installing the build below /opt/sandgate …"
    run_quietly 'installing below /opt/sandgate' cmake --install "$project/build" --prefix /opt/sandgate
    mkdir -p /opt/sandgate/examples
    cp "$project"/examples/*.yaml /opt/sandgate/examples/
    chown -R root:root /opt/sandgate
    chmod -R u=rwX,go=rX /opt/sandgate
    binary=/opt/sandgate/bin/sandgate examples=/opt/sandgate/examples
}

# The example with its upstream replaced by the real one; everything else stays.
with_real_model() { # with_real_model EXAMPLE → path
    local out=$work/real.yaml
    python3 - "$1" "$UPSTREAM" "$MODEL" "${UPSTREAM_KEY:+yes}" >"$out" <<'P'
import json, sys
example, url, model, has_key = sys.argv[1:]
entry = ["upstreams:", "  - name: real", f"    base_url: {json.dumps(url)}", f"    models: [{json.dumps(model)}]"]
if has_key:
    entry.append('    api_key: "${UPSTREAM_KEY}"')
inside = False
for line in open(example, encoding="utf-8").read().splitlines():
    starts_section = bool(line) and not line[0].isspace() and line[0] not in "#-"
    if starts_section:
        inside = line.startswith("upstreams:")
        if inside:
            print("\n".join(entry))
    if not inside:
        print(line)
P
    say "$out"
}

gateway_start() { # gateway_start CONFIG: 0 once it serves; its log goes on through descriptor 3
    local as_user=() line
    check_port
    [[ $(id -u) == 0 ]] && as_user=(--reuid=sandgate --regid=sandgate --clear-groups --inh-caps=-all
        --bounding-set=-all --no-new-privs)
    rm -f "$work/log"
    mkfifo "$work/log"
    # In a session of its own, so that Ctrl-C reaches this script alone, which then ends it with one SIGTERM.
    env -i PATH="$PATH" HOME=/nonexistent LANG=C.UTF-8 ${UPSTREAM_KEY:+UPSTREAM_KEY="$UPSTREAM_KEY"} \
        setsid setpriv --pdeathsig TERM "${as_user[@]}" \
        "$binary" serve --config "$1" --listen "127.0.0.1:$port" >/dev/null 2>"$work/log" </dev/null 3<&- &
    gateway=$!
    exec 3<"$work/log"
    : >"$work/start.log"
    while read -r -u 3 line; do
        printf '%s\n' "$line" >>"$work/start.log"
        [[ $line == *' event=serving '* ]] && return 0
    done
    wait "$gateway" || true
    gateway=
    return 1
}

gateway_failure() { # what a gateway that did not start said in plain words
    grep -v '^time=' "$work/start.log" | sed 's/^sandgate: //' | head -n 5 || true
}

start_offline() {
    say ""
    say "The local sandbox cannot be made on this host:"
    gateway_failure | sed 's/^/    /'
    say ""
    say "Shown instead: examples/offline.yaml."
    say "IN THIS MODE NO PYTHON RUNS: THE SANDBOX IS A MOCK THAT UNDERSTANDS A FEW WORDS OF PYTHON."
    [[ -z ${UPSTREAM-} ]] || say "UPSTREAM is left aside: a real model would write code that the mock does not understand."
    model=mock
    offline=1
    gateway_start "$examples/offline.yaml" || { gateway_failure >&2; fail "the gateway did not start"; }
}

what_happened() {
    say ""
    if [[ -n $offline ]]; then
        say "What happened: programs asked the gateway, as they would ask a model service, to run code. A mock model called"
        say "the code tool; the gateway ran the code in MOCK containers, which know a few words of Python, and gave the"
    else
        say "What happened: programs asked the gateway, as they would ask a model service, to run Python code. The model"
        say "called the code tool; the gateway ran the code in locked-down containers on this machine and gave the"
    fi
    say "results back to the model. Requests of one session found their variables again; others did not see them."
    say "From nothing to here it took $SECONDS s."
}

how_to_go_on() {
    cat <<TEXT

The program is $binary; nothing was put on the PATH. From here to a gateway of your own:

  cp $project/config.yaml.example config.yaml     then say in it where your models are, and what else differs
  $binary keygen --name team-a     a key for a client, and the line for auth.keys that makes the gateway know it
  $binary check --config config.yaml
  $binary serve --config config.yaml
TEXT
}

what_to_try() {
    cat <<TEXT

The gateway serves at $url until you press Ctrl-C. Try in another terminal:

  curl $url/v1/chat/completions -H 'Content-Type: application/json' -d '{
    "model": "$model", "tools": [{"type": "code_interpreter"}], "metadata": {"session_id": "mine"},
    "messages": [{"role": "user", "content": "Run this Python code and tell me the result: print(6 * 7)"}]}'

or from Python (python3 -m pip install openai):

  from openai import OpenAI
  client = OpenAI(base_url="$url/v1", api_key="none")
  answer = client.chat.completions.create(model="$model", tools=[{"type": "code_interpreter"}],
      metadata={"session_id": "mine"},
      messages=[{"role": "user", "content": "Run this Python code and tell me the result: print(6 * 7)"}])
  print(answer.choices[0].message.content)

TEXT
    how_to_go_on
    say ""
    say "Each request that comes is one line below:"
}

offline=
[[ -z ${UPSTREAM-} ]] || check_upstream
check_port
install_missing build run quickstart
if [[ -e $project/build/CMakeCache.txt ]]; then
    say "Building …"
    build_preset release
else
    say "Building (a minute or two) …"
    build_preset release -DSANDGATE_TESTS=OFF
fi
install_build
config=$examples/local.yaml
[[ -z ${UPSTREAM-} ]] || config=$(with_real_model "$config")
say "Starting the gateway with examples/local.yaml${UPSTREAM:+, its model replaced by $MODEL at $UPSTREAM} …"
if ! gateway_start "$config"; then
    if [[ $(<"$work/start.log") == *event=plugin_open_failed* ]]; then
        start_offline
    else
        gateway_failure >&2
        fail "the gateway did not start"
    fi
fi
# From here on its log is passed on: to the terminal in the end, into a file while the acceptance speaks.
cat <&3 >"$work/requests.log" &
log_copy=$!

say ""
say "Checking that sessions hold (scripts/acceptance.sh) …"
held=1
SANDGATE_URL=$url SANDGATE_MODEL=$model "$project/scripts/acceptance.sh" || held=
if [[ -z $held ]]; then
    say ""
    say "Not all held. The end of the gateway's log:"
    tail -n 15 "$work/requests.log" | sed 's/^/    /'
    [[ -z ${UPSTREAM-} ]] || say "A model that does not call tools, or does not run the code that it is asked to run, fails here too."
    exit 1
fi
what_happened
if [[ -n $once ]]; then
    gateway_stop
    wait "$log_copy"
    ((ended_with == 0)) || fail "the gateway ended with code $ended_with"
    say "The gateway has ended; all of its containers are deleted."
    how_to_go_on
    exit 0
fi
what_to_try
kill "$log_copy"
cat <&3 &
wait "$!" # until the gateway ends, or a signal comes
wait "$gateway" || ended_with=$?
gateway=
fail "the gateway ended by itself with code $ended_with"
