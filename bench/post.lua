-- wrk: the same chat request over and over; BENCH_BODY names the file with it. Counts answers that are not 200.
local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()

local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() bad = 0 end
function response(status) if status ~= 200 then bad = bad + 1 end end
function done(summary, latency)
    local wrong = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
    for _, thread in ipairs(threads) do wrong = wrong + thread:get("bad") end
    print(string.format("RESULT %d %d %d", summary.requests, wrong, latency:percentile(50)))
end
