/* JavaScript in a box: what a cell gives, what stays from cell to cell, how it ends. Every test makes a real box. Skipped
 * where there is no node under /usr. */
#include "fixture.h"

#include "loop/loop.h"

#include <unistd.h>

static void js_for(const char *code, int64_t timeout_ms)
{
    host_exec(box, "javascript", code, strlen(code), timeout_ms, &o);
}

/* Runs code that must go well and give exactly this (see struct outcome, `all`). */
#define EXPECT_JS(script, everything)        \
    do {                                     \
        js_for(script, DEFAULT_TIMEOUT_MS);  \
        EXPECT_TEXT(o.error.message, "");    \
        CU_ASSERT_EQUAL(o.code, 0);          \
        EXPECT_TEXT(o.all.data, everything); \
    } while (0)

#define VALUE(text) "[result]{\"text/plain\":\"" text "\"}"
#define NEW_NODE(why)                                                               \
    "[status]{\"state\":\"restarted\",\"note\":\"node " why "; this is a new one: " \
    "variables and functions are not those of before\"}"

static void values_body(void)
{
    EXPECT_JS("1 + 1", VALUE("2"));
    EXPECT_JS("console.log('out'); console.error('err'); console.log('again'); ({a: [1, {b: 2}]})",
              "[out]out\n[err]err\n[out]again\n" VALUE("{ a: [ 1, { b: 2 } ] }"));
    EXPECT_JS("{a: 1, b: 'x'}", VALUE("{ a: 1, b: 'x' }"));
    EXPECT_JS("undefined", "");
    EXPECT_JS("null", VALUE("null"));
    EXPECT_JS("-0", VALUE("-0"));
    EXPECT_JS("12n", VALUE("12n"));
    EXPECT_JS("fs.readFileSync('/etc/hostname', 'utf8')", VALUE("'sandbox\\\\n'"));
    EXPECT_JS("String(child_process.execSync('ls /proc/self/fd')).split('\\n').join(' ')",
              VALUE("'0 1 2 3 '"));
    EXPECT_JS("child_process.execSync('echo from a child', {stdio: 'inherit'});",
              "[out]from a child\n" VALUE("null"));
}

static void a_cell_gives_what_it_prints_and_its_last_value(void)
{
    with_box(values_body);
}

static void state_body(void)
{
    EXPECT_JS("const a = 1; let b = 2; function f() { return a + b; } class K {}", "");
    EXPECT_JS("const a = 10; let b = 3; f()", VALUE("13"));
    EXPECT_JS("const got = await new Promise((r) => setTimeout(() => r(7), 5)); got", VALUE("7"));
    EXPECT_JS("got + a", VALUE("17"));
    EXPECT_RUN("a = 'python'", "");
    EXPECT_JS("a; fs.writeFileSync('/home/user/shared', String(a))", "");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/shared\",\"size\":2,\"type\":\"file\"}\n");
    EXPECT_RUN("print(a, open('shared').read())\nimport os\ntry: os.wait()\n"
               "except ChildProcessError: print('none')",
               "[out]python 10\nnone\n");
}

static void names_body(void)
{
    EXPECT_JS("class Number { constructor(v) { this.v = v; } } class Object {} class Symbol {}"
              "const String = 1, Error = 2, process = 3, require = 4;",
              "");
    EXPECT_JS("new Number(3)", VALUE("Number { v: 3 }"));
    EXPECT_JS(
        "console.log(String); null.x",
        "[out]1\n[exception]{\"name\":\"TypeError\",\"value\":\"Cannot read properties of null "
        "(reading 'x')\",\"traceback\":\"TypeError: Cannot read properties of null (reading "
        "'x')\\n    at cell-3:1:27\"}");
    EXPECT_JS("process", VALUE("3"));
    EXPECT_RUN("open('json.py', 'w').write('no module\\n'); kept = 5;", "");
    EXPECT_JS(
        "throw [process]",
        "[exception]{\"name\":\"Uncaught\",\"value\":\"[ 3 ]\",\"traceback\":\"Uncaught [ 3 ]\"}");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"5\"}");
}

static void cells_and_files_may_have_the_names_of_what_the_driver_uses(void)
{
    with_box(names_body);
}

static void what_cells_declare_stays_and_may_be_declared_again(void)
{
    with_box(state_body);
}

static void errors_body(void)
{
    EXPECT_JS("const kept = 5\nfunction g(x) {\n  throw new TypeError('bad ' + x) }\ng(3)",
              "[exception]{\"name\":\"TypeError\",\"value\":\"bad 3\",\"traceback\":\"TypeError: "
              "bad 3\\n    at g (cell-1:3:9)\\n    at cell-1:4:1\"}");
    EXPECT_JS("kept", VALUE("5"));
    EXPECT_JS("let x = ;",
              "[exception]{\"name\":\"SyntaxError\",\"value\":\"Unexpected token ';'\","
              "\"traceback\":\"SyntaxError: Unexpected token ';'\\n    at cell-3:1:9\"}");
    EXPECT_JS("throw {code: 4}", "[exception]{\"name\":\"Uncaught\",\"value\":\"{ code: 4 }\","
                                 "\"traceback\":\"Uncaught { code: 4 }\"}");
    js_for("await import('fs')", DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.exception.data, "import is not available here: use require()");
    js_for("setTimeout(() => { throw new Error('late') }, 1);"
           "await new Promise((r) => setTimeout(r, 50)); kept",
           DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.err.data, "Uncaught Error: late");
    EXPECT_PART(o.all.data, VALUE("5"));
    EXPECT_JS("process.exit(3)",
              "[exception]{\"name\":\"ProcessExit\",\"value\":\"node ended with status 3; its "
              "variables are gone\",\"traceback\":\"ProcessExit: node ended with status 3; its "
              "variables are gone\\n\"}");
    EXPECT_JS("typeof kept", NEW_NODE("had ended") VALUE("'undefined'"));
}

static void an_error_has_a_short_stack_and_state_survives_it(void)
{
    with_box(errors_body);
}

/* False where the machine is too busy. */
static bool is_interrupted(const char *code)
{
    js_for(code, 500);
    if (too_busy()) {
        return false;
    }
    CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    EXPECT_TEXT(o.error.message,
                "local (box): the code ran longer than 1s and was interrupted; variables are kept");
    return true;
}

static void interrupt_body(void)
{
    EXPECT_RUN("own = 1", "");
    EXPECT_JS("let kept = 5", "");
    static const char *const endless[] = {"for (;;) {}", "child_process.execSync('sleep 1000')",
                                          "await new Promise(() => {})"};
    for (size_t i = 0; i < COUNT_OF(endless); i++) {
        if (!is_interrupted(endless[i])) {
            return;
        }
        js_for("kept", DEFAULT_TIMEOUT_MS);
        if (too_busy()) {
            return;
        }
        EXPECT_TEXT(o.all.data, VALUE("5"));
    }
    EXPECT_RUN("own", VALUE("1"));
    EXPECT_RUN("import subprocess\nsubprocess.run(['pgrep', 'sleep']).returncode", VALUE("1"));
}

static void code_over_its_time_is_interrupted(void)
{
    with_calm_box(interrupt_body);
}

/* After the interrupt node is there, with its variables and with all that it waits by. False where the machine is too busy. */
static bool survives(const char *cell)
{
    js_for("globalThis.kept = 5; await null", DEFAULT_TIMEOUT_MS);
    js_for(cell, 200);
    if (too_busy()) {
        return false;
    }
    CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    js_for("await new Promise((r) => setTimeout(() => setImmediate(r), 1));"
           "(await fs.promises.readFile('/etc/hostname')).length + kept",
           DEFAULT_TIMEOUT_MS);
    if (too_busy()) {
        return false;
    }
    EXPECT_TEXT(o.error.message, "");
    EXPECT_TEXT(o.all.data, VALUE("13"));
    return true;
}

static size_t behind_tried; /* another box goes on with the one at which the machine was too busy */

/* Each way in which code can keep node busy when the cell's own first part is over. */
static void behind_body(void)
{
    static const char *const cells[] = {
        "for (;;) await null",
        "await null; for (;;);",
        "await null; for (;;) try { for (;;); } finally { continue }",
        "await new Promise((r) => setTimeout(r, 1)); for (;;);",
        "await fs.promises.readFile('/etc/hostname'); for (;;);",
        "setTimeout(() => { for (;;); }, 1); await new Promise(() => {})",
        "setImmediate(() => { for (;;); }); await new Promise(() => {})",
        "process.nextTick(() => { for (;;); }); await new Promise(() => {})",
        "queueMicrotask(() => { for (;;); }); await new Promise(() => {})",
        "process.stdin.on('data', () => {}).on('end', () => { for (;;); }); await new Promise(() "
        "=> "
        "{})",
        "await null; /^(a+)+$/.test('a'.repeat(60) + 'b')",
        "await null; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "await null; child_process.execSync('sleep 1000')",
        "await null; for (;;) console.log('x')",
        "await null; ({[util.inspect.custom]() { for (;;); }})",
    };
    while (behind_tried < COUNT_OF(cells) && survives(cells[behind_tried])) {
        behind_tried++;
    }
    if (behind_tried == COUNT_OF(cells)) {
        EXPECT_RUN("import subprocess\nsubprocess.run(['pgrep', 'sleep']).returncode", VALUE("1"));
    }
}

static void code_that_is_busy_behind_an_await_is_interrupted_too(void)
{
    behind_tried = 0;
    with_calm_box(behind_body);
}

/* It keeps the next cell from being read, until that is over its time. */
static void left_busy_body(void)
{
    js_for("globalThis.kept = 5; setTimeout(() => { kept = 6; for (;;); }, 1); 0",
           DEFAULT_TIMEOUT_MS);
    js_for("0", 200);
    if (too_busy()) {
        return;
    }
    CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    js_for("kept", DEFAULT_TIMEOUT_MS);
    if (too_busy()) {
        return;
    }
    EXPECT_TEXT(o.error.message, "");
    EXPECT_TEXT(o.all.data, VALUE("6"));
}

static void what_an_earlier_cell_has_left_busy_is_interrupted_with_a_later_one(void)
{
    with_calm_box(left_busy_body);
}

#define NODE_KILLED "node did not react to the interrupt and was killed; its variables are gone"

/* What node itself does not get over: it calls the one that was broken off again, without end. */
static void lost_body(void)
{
    EXPECT_JS("let kept = 5", "");
    js_for("setImmediate(() => {}); setImmediate(() => { for (;;); }); await new Promise(() => {})",
           500);
    CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    EXPECT_TEXT(o.error.message, "local (box): the code ran longer than 1s and was killed, and "
                                 "node with it: its variables are gone, files are kept");
    EXPECT_TEXT(o.all.data, "[exception]{\"name\":\"Interrupted\",\"value\":\"" NODE_KILLED
                            "\",\"traceback\":\"Interrupted: " NODE_KILLED "\\n\"}");
    EXPECT_JS("typeof kept", NEW_NODE("was killed with a run before") VALUE("'undefined'"));
}

static void a_node_that_cannot_go_on_is_killed_and_this_cell_and_the_next_say_so(void)
{
    with_box(lost_body);
}

/* Its descriptors are put onto numbers of its own, whichever the code holds. */
static void numbers_body(void)
{
    EXPECT_RUN("files = []", "");
    EXPECT_JS("1 + 1", VALUE("2"));
    for (int i = 0; i < 10; i++) {
        EXPECT_RUN("files.append(open('/dev/null'))", "");
        js_for("process.exit()", DEFAULT_TIMEOUT_MS);
        EXPECT_JS("await null; 1 + 2", NEW_NODE("had ended") VALUE("3"));
    }
}

static void node_starts_whatever_descriptors_the_code_holds(void)
{
    with_box(numbers_body);
}

/* Cells that end by themselves about when they are interrupted, each way in which a cell can be busy: whoever comes first, the
 * next cell is not broken off, and node is there still. */
static void edge_body(void)
{
    static const char *const cells[] = {
        "const until = performance.now() + 20; while (performance.now() < until);",
        "await new Promise((r) => setTimeout(r, 20))",
        "child_process.execSync('sleep 0.02')",
        "await null; const end = performance.now() + 20; while (performance.now() < end);",
    };
    int stopped = 0, ended = 0, killed = 0;
    EXPECT_JS("let kept = 5", "");
    for (int round = 0; round < 48; round++) {
        js_for(cells[round % 4], 15 + round / 4);
        if (too_busy()) { /* all of the box was killed */
            return;
        }
        stopped += o.code == SG_E_TIMEOUT;
        ended += o.code == 0;
        js_for("kept", DEFAULT_TIMEOUT_MS);
        EXPECT_TEXT(o.error.message, "");
        if (strstr(o.all.data, "was killed with a run before") != NULL) { /* too busy a machine */
            killed++;
            EXPECT_JS("let kept = 5", "");
        } else {
            EXPECT_TEXT(o.all.data, VALUE("5"));
        }
    }
    CU_ASSERT_EQUAL(stopped + ended, 48);
    CU_ASSERT_TRUE(stopped > killed);
}

static void an_interrupt_belongs_to_its_cell_or_to_none(void)
{
    with_calm_box(edge_body);
}

static void apart_body(void)
{
    EXPECT_JS("globalThis.ticks = 0; setInterval(() => { ticks++; console.log('tick') }, 5); 0",
              VALUE("0"));
    js_for(
        "const from = ticks; while (ticks < from + 3) await new Promise((r) => setTimeout(r, 5));"
        "console.log('own')",
        DEFAULT_TIMEOUT_MS);
    EXPECT_TEXT(o.all.data, "[out]own\n");
}

static void what_an_earlier_cell_left_running_does_not_print_into_a_later_one(void)
{
    with_box(apart_body);
}

/* All that node waits for: where boxes have the gateway's uid it does so by poll(). */
static void waits_body(void)
{
    EXPECT_JS("const cat = child_process.spawn('cat'); let got = ''; cat.stdout.on('data', (d) => "
              "got += d);"
              "cat.stdin.end('through a pipe'); await new Promise((r) => cat.on('close', r)); got",
              VALUE("'through a pipe'"));
    EXPECT_JS("fs.writeFileSync('/home/user/.child.js', \"process.on('message', (m) => "
              "process.send(m + 1, \" +"
              "\"() => process.disconnect()))\"); const child = "
              "child_process.fork('/home/user/.child.js');"
              "child.send(41); (await events.once(child, 'message'))[0]",
              VALUE("42"));
    EXPECT_JS("const worker = new worker_threads.Worker(\"const port = "
              "require('worker_threads').parentPort;\" +"
              "\"port.on('message', (m) => port.postMessage(m * 2))\", {eval: true}); "
              "worker.postMessage(21);"
              "const doubled = (await events.once(worker, 'message'))[0]; await "
              "worker.terminate(); doubled",
              VALUE("42"));
    EXPECT_JS(
        "const server = http.createServer((q, a) => a.end('served')).listen(0, '127.0.0.1');"
        "await events.once(server, 'listening');"
        "const text = await (await fetch('http://127.0.0.1:' + server.address().port)).text();"
        "server.closeAllConnections(); await new Promise((r) => server.close(r)); text",
        VALUE("'served'"));
    EXPECT_JS("await stream.promises.pipeline(stream.Readable.from(['a'.repeat(100000)]), "
              "zlib.createGzip(),"
              "fs.createWriteStream('/home/user/.packed'));"
              "zlib.gunzipSync(await fs.promises.readFile('/home/user/.packed')).length",
              VALUE("100000"));
    EXPECT_JS("let read = 0; for await (const part of process.stdin) read += part.length; read",
              VALUE("0"));
    EXPECT_JS("(await dns.promises.lookup('localhost', {family: 4})).address",
              VALUE("'127.0.0.1'"));
    EXPECT_JS("const later = events.once(process, 'SIGUSR2'); process.kill(process.pid, 'SIGUSR2');"
              "await later; 'signalled'",
              VALUE("'signalled'"));
    /* The kernel's own, which is counted for the user, only where each box is a user. */
    EXPECT_JS(
        "fs.readdirSync('/proc/self/fd').some((n) => { try { return "
        "fs.readlinkSync('/proc/self/fd/' + n).includes('eventpoll') } catch { return false } })",
        geteuid() == 0 ? VALUE("true") : VALUE("false"));
}

static void all_that_node_waits_for_comes(void)
{
    with_box(waits_body);
}

static void refused_body(void)
{
    EXPECT_JS("await fetch('http://192.0.2.1/').catch((e) => e.cause.code)",
              VALUE("'ENETUNREACH'"));
    EXPECT_JS("let why; try { fs.watch('/home/user') } catch (e) { why = e.code } why",
              VALUE("'ENOSYS'"));
    EXPECT_JS("const udp = dgram.createSocket('udp4');"
              "const sent = await new Promise((r) => udp.send('x', 9, '127.0.0.1', r));"
              "udp.close(); sent && sent.code",
              geteuid() == 0 ? VALUE("null") : VALUE("'EPERM'"));
}

static void what_a_box_does_not_give_node_fails_with_its_reason(void)
{
    with_box(refused_body);
}

/* Not only the one that runs cells. */
static void others_body(void)
{
    static const char command[] =
        "env -i /usr/bin/env node -e 'setTimeout(() => console.log(1 + 1), 5)'";
    host_exec(box, "bash", command, strlen(command), DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.out.data, "2\n");
    EXPECT_TEXT(o.err.data, "");
    EXPECT_RUN("import subprocess\n"
               "print(subprocess.run(['node', '-e', 'setTimeout(() => console.log(3), 5)'], "
               "capture_output=True))",
               "[out]CompletedProcess(args=['node', '-e', 'setTimeout(() => console.log(3), 5)'], "
               "returncode=0, "
               "stdout=b'3\\n', stderr=b'')\n");
    EXPECT_JS("child_process.execFileSync('node', ['-p', 'Object.keys(process.env).filter((n) => "
              "n.startsWith(\"LD_\"))'])"
              ".toString()",
              VALUE("'[]\\\\n'"));
    EXPECT_RUN("for path in '/run/epoll.so', '/etc/ld.so.preload':\n"
               "    try: open(path, 'w').close(); print('written')\n"
               "    except OSError as e: print(e.errno)",
               "[out]30\n30\n");
}

static void node_runs_whoever_starts_it(void)
{
    with_box(others_body);
}

static void plain_body(void)
{
    EXPECT_RUN("import gc\ngc.unfreeze() # what is of the template\nc = [o for o in "
               "gc.get_objects() if type(o).__name__ == 'Scripts'][0]\n"
               "type(c).start.__globals__['SHELLS'] = ('/usr/bin/sh',)",
               "");
    EXPECT_JS("let kept = 5", "");
    if (!is_interrupted("for (;;) {}")) {
        return;
    }
    js_for("kept", DEFAULT_TIMEOUT_MS);
    if (!too_busy()) {
        EXPECT_TEXT(o.all.data, VALUE("5"));
    }
}

static void node_starts_where_there_is_no_bash(void)
{
    with_calm_box(plain_body);
}

static void missing_body(void)
{
    EXPECT_RUN("import gc\ngc.unfreeze() # what is of the template\nc = [o for o in "
               "gc.get_objects() if type(o).__name__ == 'Scripts'][0]\n"
               "type(c).run.__globals__['NODES'] = ()\n"
               "import os\nfds = os.listdir('/proc/self/fd')",
               "");
    js_for("1", DEFAULT_TIMEOUT_MS);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
    EXPECT_TEXT(o.error.message, "local (box): the container has no JavaScript: there is no node "
                                 "in its /usr/bin, which is the machine's; install it there");
    EXPECT_RUN("print(os.listdir('/proc/self/fd') == fds)", "[out]True\n");
    host_exec(box, "ruby", "1", 1, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.error.message, "local (box): local runs python, bash and javascript, not 'ruby'");
}

static void a_machine_without_node_says_so(void)
{
    with_box(missing_body);
}

static const struct test tests[] = {
    TEST(a_cell_gives_what_it_prints_and_its_last_value),
    TEST(what_cells_declare_stays_and_may_be_declared_again),
    TEST(cells_and_files_may_have_the_names_of_what_the_driver_uses),
    TEST(an_error_has_a_short_stack_and_state_survives_it),
    TEST(code_over_its_time_is_interrupted),
    TEST(code_that_is_busy_behind_an_await_is_interrupted_too),
    TEST(what_an_earlier_cell_has_left_busy_is_interrupted_with_a_later_one),
    TEST(a_node_that_cannot_go_on_is_killed_and_this_cell_and_the_next_say_so),
    TEST(node_starts_whatever_descriptors_the_code_holds),
    TEST(an_interrupt_belongs_to_its_cell_or_to_none),
    TEST(what_an_earlier_cell_left_running_does_not_print_into_a_later_one),
    TEST(all_that_node_waits_for_comes),
    TEST(what_a_box_does_not_give_node_fails_with_its_reason),
    TEST(node_runs_whoever_starts_it),
    TEST(node_starts_where_there_is_no_bash),
    TEST(a_machine_without_node_says_so),
};

int main(int argc, char **argv)
{
    if (access("/usr/bin/node", X_OK) != 0 && access("/usr/local/bin/node", X_OK) != 0) {
        fprintf(stderr, "skipped: there is no node under /usr\n");
        return 77;
    }
    return run_tests("local_script", tests, COUNT_OF(tests), argc, argv);
}
