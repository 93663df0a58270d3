#!/usr/bin/env bash
# Acceptance: code interpreter sessions over /chat/completions, as an operator checks a running gateway.
#   SANDGATE_URL=http://127.0.0.1:4000 SANDGATE_KEY=sk-… SANDGATE_KEY2=sk-… SANDGATE_MODEL=mock scripts/acceptance.sh
# Works with any model that calls the code tool when asked to run code, the mock model included. What is expected is computed: it
# stands nowhere in the prompt, so an answer that merely repeats the prompt fails. Needs curl and python3. Exit 0: all hold.
set -uo pipefail
url=${SANDGATE_URL:-http://127.0.0.1:4000} key=${SANDGATE_KEY:-} key2=${SANDGATE_KEY2:-} model=${SANDGATE_MODEL:-mock}
run=$(date +%s)-$$ failures=0
n=$((RANDOM % 9000 + 1000))

ask() { # ask SESSION CODE [KEY] [TOOLS] [STREAM] -> the text of the answer
    local body
    body=$(python3 - "$model" "$1" "$2" "${4-code_interpreter}" "${5-}" <<'P'
import json, sys
model, session, code, tool, stream = sys.argv[1:]
body = {"model": model, "messages": [{"role": "user", "content": "Run this Python code and tell me the result: " + code}]}
if session: body["metadata"] = {"session_id": session}
if tool: body["tools"] = [{"type": tool}]
if stream: body["stream"] = True
print(json.dumps(body))
P
    )
    curl --silent --show-error --max-time 120 "$url/chat/completions" --header 'Content-Type: application/json' \
        ${3:+--header "Authorization: Bearer $3"} --data "$body" | python3 -c '
import json, sys
raw = sys.stdin.read()
if not raw.strip():
    print("(no answer)")
elif raw.startswith("data:") or raw.startswith(":"):
    parts = [json.loads(l[5:]) for l in raw.splitlines() if l.startswith("data:") and l[5:].strip() != "[DONE]"]
    if any("error" in p for p in parts):
        print("(no answer) " + raw[-300:])
    else:
        text = "".join(c["delta"].get("content") or "" for p in parts for c in p["choices"])
        print(text + ("" if "[DONE]" in raw else " (no end mark)"))
else:
    answer = json.loads(raw)
    print(answer["choices"][0]["message"]["content"] if "choices" in answer else "(no answer) " + raw[:300])'
}
expect() { # expect TITLE ANSWER PATTERN; a pattern that starts with ! must not be there. No answer never fits.
    local wanted=0 found pattern=${3#!}
    [[ $3 == !* ]] && wanted=1
    grep --quiet --ignore-case --extended-regexp -- "$pattern" <<<"$2"
    found=$?
    if [[ $found == "$wanted" && -n $2 && $2 != '(no answer)'* ]]; then
        printf 'ok    %s\n' "$1"
    else
        printf 'FAIL  %s: %s in: %s\n' "$1" "$3" "$(head -c 300 <<<"$2")"
        failures=$((failures + 1))
    fi
}
missing='not defined|NameError'
expect 'without the tool nothing is run'           "$(ask '' "print($n * 7919)" "$key" '')"                 "!$((n * 7919))"
expect 'a session runs code'                       "$(ask "a-$run" "x = $n * 7919; print(x)" "$key")"        "$((n * 7919))"
expect 'the same session keeps its variables'      "$(ask "a-$run" 'print(x + 1)' "$key")"                  "$((n * 7919 + 1))"
expect 'another session does not see them'         "$(ask "b-$run" 'print(x)' "$key")"                      "$missing"
expect 'without a session code runs'               "$(ask '' "y = $n * 6007; print(y)" "$key")"              "$((n * 6007))"
expect 'without a session nothing is kept'         "$(ask '' 'print(y)' "$key")"                            "$missing"
expect 'a stream gives the same'                   "$(ask "a-$run" 'print(x + 2)' "$key" code_interpreter 1)" "$((n * 7919 + 2))"
expect 'the first session is still there'          "$(ask "a-$run" 'print(x * 2)' "$key")"                  "$((n * 7919 * 2))"
if [[ -n $key2 ]]; then
    expect 'another key with the same session id does not see it' "$(ask "a-$run" 'print(x)' "$key2")"      "$missing"
fi
if ((failures > 0)); then echo "$failures did not hold"; exit 1; fi
echo 'all hold'
