#!/usr/bin/env bash
# How much CPU a request costs here, as ratios taken in one run on one machine:
#   relay       plain relay, access log on, against nginx proxy_pass doing the same (32 and 256 connections), and its
#               added time at one connection
#   tool turn   a request with one run of code (mock model over HTTP, mock sandbox) against a relayed request to it
# CPU is that of the processes of the proxy alone, user and system, read from /proc before and after. The upstream and the
# load generator run on the same cores, so throughput says little and is not shown; ratios say what they say.
#   bench/run.sh [SECONDS [ROUNDS]]      10 seconds a measurement, 3 rounds; each figure is the median of the rounds
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
seconds=${1:-10} rounds=${2:-3}
install_missing build run bench
say "Building (release) …"
if [[ -e $project/build/CMakeCache.txt ]]; then build_preset release; else build_preset release -DSANDGATE_TESTS=OFF; fi
binary=$project/build/bin/sandgate

work=$(mktemp -d)
chmod 711 "$work" # nginx's workers have another user
pids=()
clean_up() {
    local pid
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT

cat >"$work/upstream.conf" <<TEXT
worker_processes 1; daemon off; pid $work/upstream.pid; error_log $work/upstream.err;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000;
  client_body_temp_path $work/u1; proxy_temp_path $work/u2; fastcgi_temp_path $work/u3; uwsgi_temp_path $work/u4; scgi_temp_path $work/u5;
  server { listen 127.0.0.1:4180 backlog=4096; default_type application/json;
    location / { return 200 '{"id":"chatcmpl-1","object":"chat.completion","created":1764400000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Good morning."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}'; } } }
TEXT
cat >"$work/nginx.conf" <<TEXT
worker_processes $(nproc); daemon off; pid $work/nginx.pid; error_log $work/nginx.err;
events { worker_connections 4096; }
http { access_log $work/nginx.log; keepalive_requests 1000000000;
  client_body_temp_path $work/n1; proxy_temp_path $work/n2; fastcgi_temp_path $work/n3; uwsgi_temp_path $work/n4; scgi_temp_path $work/n5;
  upstream up { server 127.0.0.1:4180; keepalive 256; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:4181 reuseport;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; } } }
TEXT
gateway_yaml() { # gateway_yaml UPSTREAM-URL
    cat <<TEXT
auth: { mode: none }
upstreams: [ { name: up, base_url: "$1", models: [m, mock] } ]
sandboxes: [ { name: box, plugin: mock } ]
interceptors: [ { plugin: code_interpreter, sandbox: box } ]
TEXT
}
gateway_yaml http://127.0.0.1:4180/v1 >"$work/relay.yaml"
gateway_yaml http://127.0.0.1:4184/v1 >"$work/tool.yaml"
printf 'auth: { mode: none }\nupstreams: [ { name: mock, plugin: mock, models: [mock] } ]\n' >"$work/mock.yaml"

python3 - "$work" <<'P'
import json, sys
def write(name, body):
    with open(f"{sys.argv[1]}/{name}", "w", encoding="utf-8") as file:
        json.dump(body, file)
history = [{"role": "user", "content": "Good morning! " * 60}]
write("plain.json", {"model": "m", "messages": history})
ask = [{"role": "user", "content": "Run this Python code and tell me the result: print(6 * 7)"}]
write("relayed.json", {"model": "mock", "messages": ask})
write("tool.json", {"model": "mock", "messages": ask, "tools": [{"type": "code_interpreter"}]})
P

wait_for_port() {
    local i
    for ((i = 0; i < 1000; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.01
    done
    fail "nothing listens at port $1: $(tail -n 3 "$work"/*.err 2>/dev/null || true)"
}
start() { # start NAME PORT COMMAND…: its pid in `started`
    local name=$1 port=$2
    shift 2
    "$@" >/dev/null 2>"$work/$name.log" </dev/null &
    started=$!
    pids+=("$started")
    wait_for_port "$port"
}
start upstream 4180 nginx -c "$work/upstream.conf" -e "$work/upstream.err"
start nginx_stderr 4181 nginx -c "$work/nginx.conf" -e "$work/nginx.err"
nginx_pid=$started
start relay 4182 "$binary" serve --config "$work/relay.yaml" --listen 127.0.0.1:4182
relay_pid=$started
start mock 4184 "$binary" serve --config "$work/mock.yaml" --listen 127.0.0.1:4184
start tool 4185 "$binary" serve --config "$work/tool.yaml" --listen 127.0.0.1:4185
tool_pid=$started

ticks_of() { # of a process and its children: user and system time
    local pid total=0 fields
    for pid in "$1" $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        read -r -a fields < <(sed 's/.*) //' "/proc/$pid/stat")
        total=$((total + fields[11] + fields[12]))
    done
    echo "$total"
}
# measure PID PORT CONNECTIONS BODY: µs of CPU a request in `cpu`, µs of time at the median in `p50`
measure() {
    local before after requests wrong threads=$(($3 < 2 ? 1 : 2))
    before=$(ticks_of "$1")
    read -r _ requests wrong p50 < <(BENCH_BODY=$work/$4 wrk -t"$threads" -c"$3" -d"${seconds}s" -s "$project/bench/post.lua" \
        "http://127.0.0.1:$2/v1/chat/completions" | grep '^RESULT')
    after=$(ticks_of "$1")
    ((wrong == 0)) || fail "$wrong of $requests requests failed at port $2"
    cpu=$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$requests" 'BEGIN { printf "%.2f", t * 1e6 / hz / n }')
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", a / b }'; }
show() { # show TITLE RATIOS… LIMIT
    local limit=${*: -1} title=$1
    shift
    printf '%-72s %5s   (aim: at most %s)\n' "$title" "$(printf '%s\n' "${@:1:$#-1}" | median)" "$limit"
}

say "Measuring, $seconds s at a time, $rounds rounds …"
seconds=2 measure "$relay_pid" 4182 32 plain.json
seconds=2 measure "$nginx_pid" 4181 32 plain.json
cpu_32=() cpu_256=() time_1=() tool=()
for ((round = 0; round < rounds; round++)); do
    for connections in 32 256; do
        measure "$nginx_pid" 4181 "$connections" plain.json
        theirs=$cpu
        measure "$relay_pid" 4182 "$connections" plain.json
        if ((connections == 32)); then cpu_32+=("$(ratio "$cpu" "$theirs")"); else cpu_256+=("$(ratio "$cpu" "$theirs")"); fi
    done
    measure "$nginx_pid" 4181 1 plain.json
    theirs=$p50
    measure "$relay_pid" 4182 1 plain.json
    ours=$p50
    measure "$nginx_pid" 4180 1 plain.json # the upstream itself: what both add to
    time_1+=("$(awk -v a="$ours" -v b="$theirs" -v c="$p50" 'BEGIN { d = b - c; printf "%.2f\n", (d > 0) ? (a - c) / d : 0 }')")
    measure "$tool_pid" 4185 32 relayed.json
    plain=$cpu
    measure "$tool_pid" 4185 32 tool.json
    tool+=("$(ratio "$cpu" "$plain")")
done
say ""
show 'relay: CPU a request ÷ nginx, 32 connections' "${cpu_32[@]}" 2.6
show 'relay: CPU a request ÷ nginx, 256 connections' "${cpu_256[@]}" 3.0
show 'relay: added time at the median ÷ nginx, 1 connection' "${time_1[@]}" 1.8
show 'tool turn: CPU a request ÷ relayed request' "${tool[@]}" 3
