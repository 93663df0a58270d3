/* The interpreter in a box, as a model uses it: state, what is printed and shown, errors, files, the modules that people
 * import. Every test opens the provider, makes a real box, and looks at all that a run hands on, in order. */
#include "fixture.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- state and values ---- */

static void state_body(void)
{
    EXPECT_RUN("import json; f=open('a.txt','w'); f.write('1'); f.close()\nx = 41", "");
    EXPECT_RUN("print(open('a.txt').read(), json.dumps({}))\nx + 1",
               "[out]1 {}\n[result]{\"text/plain\":\"42\"}");
    EXPECT_RUN("def twice(n):\n    return 2 * n\ntwice(_)", "[result]{\"text/plain\":\"84\"}");
}

static void variables_files_and_imports_are_kept_between_runs(void)
{
    with_box(state_body);
}

static void last_expression_body(void)
{
    EXPECT_RUN("None", "");
    EXPECT_RUN("5;", "");
    EXPECT_RUN("a = 5", "");
    EXPECT_RUN("'\\u00e4\"\\\\'", "[result]{\"text/plain\":\"'\xC3\xA4\\\"\\\\\\\\'\"}");
    EXPECT_RUN("if True:\n    5", "");
    EXPECT_RUN("", "");
    EXPECT_RUN("# nothing", "");
}

static void only_the_value_of_a_last_expression_is_shown(void)
{
    with_box(last_expression_body);
}

static void forms_body(void)
{
    EXPECT_RUN(
        "class Table:\n"
        "    def __repr__(self): return 'table'\n"
        "    def _repr_html_(self): return '<b>t</b>'\n"
        "    def _repr_png_(self): return b'PNG'\n"
        "    def _repr_latex_(self): raise ValueError\n"
        "display(Table())\nprint('then')\nTable()",
        "[result]{\"text/plain\":\"table\",\"text/html\":\"<b>t</b>\",\"image/png\":\"UE5H\"}"
        "[out]then\n"
        "[result]{\"text/plain\":\"table\",\"text/html\":\"<b>t</b>\",\"image/png\":"
        "\"UE5H\"}");
}

static void a_value_is_shown_under_all_its_forms(void)
{
    with_box(forms_body);
}

/* A stand-in for matplotlib with the four functions that are used of it. */
static const char fake_pyplot[] =
    "import os\nos.makedirs('matplotlib', exist_ok=True)\n"
    "open('matplotlib/__init__.py','w').close()\n"
    "open('matplotlib/pyplot.py','w').write('''\n"
    "figures = {}\n"
    "class Figure:\n"
    "    def savefig(self, file, format, bbox_inches):\n"
    "        file.write(format.encode())\n"
    "    def __repr__(self):\n"
    "        return '<Figure>'\n"
    "def figure(number=None):\n"
    "    return figures.setdefault(number or len(figures) + 1, Figure())\n"
    "def get_fignums():\n"
    "    return list(figures)\n"
    "def close(which):\n"
    "    figures.clear()\n"
    "''')";

static void figures_body(void)
{
    exec(fake_pyplot);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_RUN("import matplotlib.pyplot as plt\nplt.figure(); plt.figure()\nprint('drawn')",
               "[out]drawn\n"
               "[result]{\"text/plain\":\"<Figure>\",\"image/png\":\"cG5n\"}"
               "[result]{\"text/plain\":\"<Figure>\",\"image/png\":\"cG5n\"}");
    EXPECT_RUN("print('closed')", "[out]closed\n");
}

static void open_figures_become_images_and_are_closed(void)
{
    with_box(figures_body);
}

/* ---- what is printed ---- */

static void order_body(void)
{
    EXPECT_RUN("import sys, subprocess\n"
               "print('a')\nprint('b', file=sys.stderr)\nprint('c')\ndisplay(1)\n"
               "sys.stderr.write('d')\nsys.stdout.buffer.write(b'e')\nNone",
               "[out]a\n[err]b\n[out]c\n[result]{\"text/plain\":\"1\"}[err]d[out]e");
    EXPECT_RUN("for i in range(5):\n"
               "    print('before', i)\n"
               "    subprocess.run(['sh', '-c', f'echo child {i}; echo error {i} >&2'])\n"
               "    print('after', i, file=sys.stderr)\n",
               "[out]before 0\nchild 0\n[err]error 0\nafter 0\n"
               "[out]before 1\nchild 1\n[err]error 1\nafter 1\n"
               "[out]before 2\nchild 2\n[err]error 2\nafter 2\n"
               "[out]before 3\nchild 3\n[err]error 3\nafter 3\n"
               "[out]before 4\nchild 4\n[err]error 4\nafter 4\n");
}

static void both_streams_results_and_subprocesses_come_in_order(void)
{
    with_box(order_body);
}

/* `all` without the lines of the writer beside. */
static void drop_lines(struct buf *text, const char *line)
{
    size_t len = strlen(line), kept = 0;
    for (size_t at = 0; at < text->len;) {
        if (strncmp(text->data + at, line, len) == 0) {
            at += len;
        } else {
            text->data[kept++] = text->data[at++];
        }
    }
    text->len = kept;
    text->data[kept] = '\0';
}

static void order_beside_a_writer_body(void)
{
    exec("import subprocess\n"
         "writer = subprocess.Popen(['sh', '-c', 'while :; do echo zzz; done'])\n"
         "for i in range(5):\n"
         "    print('before', i)\n"
         "    subprocess.run(['sh', '-c', f'echo child {i}'])\n"
         "    print('after', i)\n"
         "writer.kill()\n"
         "_ = writer.wait()");
    CU_ASSERT_EQUAL(o.code, 0);
    drop_lines(&o.all, "zzz\n");
    EXPECT_TEXT(o.all.data, "[out]before 0\nchild 0\nafter 0\nbefore 1\nchild 1\nafter 1\n"
                            "before 2\nchild 2\nafter 2\nbefore 3\nchild 3\nafter 3\n"
                            "before 4\nchild 4\nafter 4\n");
}

static void order_holds_beside_a_process_that_writes_without_end(void)
{
    with_options(&(struct host_options){.output = 64 << 20}, order_beside_a_writer_body);
}

static void bytes_body(void)
{
    EXPECT_RUN("print('\\udcff \\u00e4 \\U0001f600')", "[out]\\udcff \xC3\xA4 \xF0\x9F\x98\x80\n");
    EXPECT_RUN("import os, sys\nos.write(1, b'\\xff\\xc3'); os.write(1, b'\\xa4|')\nNone",
               "[out]\xEF\xBF\xBD\xC3\xA4|");
    EXPECT_RUN("sys.stdout.buffer.write(b'\\xe4'); sys.stdout.buffer.write(b'x\\xc3')\nNone",
               "[out]\xEF\xBF\xBDx\xEF\xBF\xBD");
    exec("print('a\\0b')");
    CU_ASSERT_EQUAL(o.out.len, 4);
    CU_ASSERT_TRUE(memcmp(o.out.data, "a\0b\n", 4) == 0);
    EXPECT_RUN("sys.stdout.close(); sys.stdout = None\nos.close(1)", "");
    EXPECT_RUN("print('still here')", "[out]still here\n");
}

static void any_bytes_become_text_and_streams_survive(void)
{
    with_box(bytes_body);
}

static void cut_body(void)
{
    exec("import sys\nprint('x' * 1000, end='')\nprint('y' * 100)\nsys.stderr.write('z')\n'value'");
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.out.len, 1024);
    CU_ASSERT_EQUAL(o.out.data[999], 'x');
    CU_ASSERT_EQUAL(o.out.data[1000], 'y');
    EXPECT_TEXT(o.err.data, "\n[output cut: the first 1024 of 1102 bytes are shown]\n");
    EXPECT_TEXT(o.results.data, "{\"text/plain\":\"'value'\"}\n");
    EXPECT_RUN("print('short')", "[out]short\n");
}

static void output_over_the_limit_is_cut_and_says_so(void)
{
    with_options(&(struct host_options){.output = 1024}, cut_body);
}

static void large_values_body(void)
{
    exec("display('x' * 50000)\ndisplay('y' * 50000)\n'z'");
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.results.len, strlen("{\"text/plain\":\"''\"}\n") + 50000 +
                                       strlen("{\"text/plain\":\"'z'\"}\n"));
    EXPECT_TEXT(o.err.data, "\n[1 shown values left out: more than 65536 bytes in all, or not what "
                            "their type says]\n");
}

static void values_over_the_limit_are_left_out(void)
{
    with_options(&(struct host_options){.results = 65536}, large_values_body);
}

/* ---- errors ---- */

static void traceback_body(void)
{
    EXPECT_RUN("x = 1\nnope\n",
               "[exception]{\"name\":\"NameError\",\"value\":\"name 'nope' is not "
               "defined\",\"traceback\":\"Traceback (most recent call last):\\n  File "
               "\\\"<cell-1>\\\", line 2, in <module>\\n    nope\\nNameError: name 'nope' is not "
               "defined\\n\"}");
    exec("def f():\n    try:\n        1/0\n    except ZeroDivisionError as error:\n"
         "        raise KeyError('k') from error\nf()");
    EXPECT_PART(o.exception.data, "{\"name\":\"KeyError\",\"value\":\"'k'\"");
    EXPECT_PART(o.exception.data, "    1/0\\n");
    EXPECT_PART(o.exception.data, "raise KeyError('k') from error\\n");
    CU_ASSERT_PTR_NULL(strstr(o.exception.data, "driver.py"));
    exec("x = (1,\n");
    EXPECT_PART(o.exception.data, "{\"name\":\"SyntaxError\",\"value\":\"'(' was never closed");
    CU_ASSERT_PTR_NULL(strstr(o.exception.data, "driver.py"));
    exec("def r(): r()\nr()");
    EXPECT_PART(o.exception.data, "\"name\":\"RecursionError\"");
    CU_ASSERT_TRUE(o.exception.len < 4000);
    exec("class E(Exception):\n    def __str__(self): raise ValueError\nraise E()");
    EXPECT_PART(o.exception.data, "{\"name\":\"E\",\"value\":\"<its text cannot be made>\"");
    exec("raise ValueError('v' * 1000000)");
    EXPECT_PART(o.exception.data, "characters left out");
    CU_ASSERT_TRUE(o.exception.len < 40000);
    exec("raise type('N' * 10000000, (Exception,), {})('v')");
    EXPECT_PART(o.exception.data, "{\"name\":\"NNN");
    CU_ASSERT_TRUE(o.exception.len < 40000);
    EXPECT_RUN("x", "[result]{\"text/plain\":\"1\"}");
}

static void an_exception_is_a_result_with_a_short_traceback(void)
{
    with_box(traceback_body);
}

static void left_body(void)
{
    EXPECT_RUN("import threading, time\ngo, told = True, 0\n"
               "def talk():\n    global told\n"
               "    while go: print('left'); display('left'); told += 1; time.sleep(0.001)\n"
               "thread = threading.Thread(target=talk); thread.start(); time.sleep(0.05);",
               o.all.data);
    EXPECT_PART(o.out.data, "left\n"); /* its own cell hears it */
    EXPECT_RUN("before = told\nwhile told < before + 5: time.sleep(0.005)\n"
               "print('own')\nown = threading.Thread(target=print, args=('own thread',))\n"
               "own.start(); own.join(); 5",
               "[out]own\nown thread\n[result]{\"text/plain\":\"5\"}");
    EXPECT_RUN("go = False; thread.join()", "");
}

static void a_thread_of_an_earlier_cell_prints_into_no_later_one(void)
{
    with_box(left_body);
}

static void stdin_and_exit_body(void)
{
    exec("name = input('who? ')\nprint(name)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, "who? ");
    EXPECT_PART(o.exception.data, "{\"name\":\"EOFError\",\"value\":\"nobody can answer input() "
                                  "here: put the value into the code\"");
    CU_ASSERT_PTR_NULL(strstr(o.exception.data, "no_input")); /* no frame of the driver's */
    exec("import sys\nkept = 7\nsys.exit(3)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.exception.data, "{\"name\":\"SystemExit\",\"value\":\"3\"");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"7\"}");
}

static void reading_input_and_leaving_are_exceptions(void)
{
    with_box(stdin_and_exit_body);
}

static void nul_and_size_body(void)
{
    static const char nul[] = "print(1)\0print(2)";
    host_exec(box, NULL, nul, sizeof nul - 1, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.exception.data, "null bytes");
    BUF_CLEANUP struct buf code = {0};
    for (int i = 0; i < 30000; i++) {
        buf_printf(&code, "x%d = %d\n", i, i);
    }
    buf_puts(&code, "x29999");
    host_exec(box, NULL, code.data, code.len, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_TRUE(code.len > 400000);
    EXPECT_TEXT(o.all.data, "[result]{\"text/plain\":\"29999\"}");
    host_exec(box, "perl", "ls", 2, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
    EXPECT_TEXT(o.error.message, "local (box): local runs python, bash and javascript, not 'perl'");
}

static void code_may_be_long_or_odd_but_must_be_python(void)
{
    with_box(nul_and_size_body);
}

/* ---- Python's own ways ---- */

static void modules_body(void)
{
    EXPECT_RUN("import json, decimal, threading, subprocess, tempfile, zoneinfo, sqlite3, asyncio, "
               "ssl, ctypes, multiprocessing, urllib.request, http.server, xml.dom.minidom, csv, "
               "lzma, bz2, zlib, hashlib, pty, concurrent.futures, unittest; print('ok')",
               "[out]ok\n");
    EXPECT_RUN("with tempfile.NamedTemporaryFile() as f: f.write(b'x'); print(f.name[:5])",
               "[out]/tmp/\n");
    EXPECT_RUN("sqlite3.connect('db').execute('select 6*7').fetchone()",
               "[result]{\"text/plain\":\"(42,)\"}");
    EXPECT_RUN("zoneinfo.ZoneInfo('UTC').key, os.sep if 'os' in dir() else '/'",
               "[result]{\"text/plain\":\"('UTC', '/')\"}");
}

static void common_modules_import(void)
{
    with_box(modules_body);
}

/* Each in a box's first cell, before anything could have been made up for. */
static void site_body(void)
{
    EXPECT_RUN("import sys, builtins, subprocess\n"
               "try: import no_such_module\nexcept ImportError: print('no')\n"
               "usual = subprocess.run([sys.executable, '-I', '-c', 'import sys, builtins\\n"
               "print(sys.path, sorted(dir(builtins)))'], capture_output=True, text=True).stdout\n"
               "print(usual == f'{sys.path[1:]} {sorted(dir(builtins))}\\n' or usual)",
               "[out]no\nTrue\n");
}

static void packages_body(void)
{
    EXPECT_RUN("import sys, subprocess; print(subprocess.run([sys.executable, '-I', '-c', 'import "
               "site; print(site.getsitepackages()[0] in \"' + repr(sys.path) + '\")'], "
               "capture_output=True, text=True).stdout, end='')",
               "[out]True\n");
    EXPECT_RUN("exit, quit",
               "[result]{\"text/plain\":\"(Use exit() or Ctrl-D (i.e. EOF) to exit, Use "
               "quit() or Ctrl-D (i.e. EOF) to exit)\"}");
}

static void lines_body(void)
{
    exec("import traceback\ntry:\n    1/0  # here\nexcept ZeroDivisionError:\n"
         "    traceback.print_exc()");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.err.data, "File \"<cell-1>\", line 3, in <module>\n    1/0  # here\n");
}

static void the_interpreter_is_as_if_it_had_started_with_site(void)
{
    with_box(site_body);
    with_box(packages_body);
    with_box(lines_body);
}

static void concurrency_body(void)
{
    EXPECT_RUN("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\n"
               "y = await f()\nawait asyncio.gather(f(), f())",
               "[result]{\"text/plain\":\"[5, 5]\"}");
    EXPECT_RUN("tasks = [asyncio.create_task(f()) for _ in range(2)]\nawait asyncio.gather(*tasks)",
               "[result]{\"text/plain\":\"[5, 5]\"}");
    EXPECT_RUN("asyncio.run(f()) + y", "[result]{\"text/plain\":\"10\"}");
    EXPECT_RUN("import threading\nt = threading.Thread(target=lambda: print('thread'))\n"
               "t.start(); t.join()",
               "[out]thread\n");
    EXPECT_RUN("import multiprocessing\nwith multiprocessing.Pool(2) as pool:\n"
               "    print(pool.map(abs, [-1, -2]))",
               "[out][1, 2]\n");
    EXPECT_RUN("import concurrent.futures as c\nwith c.ThreadPoolExecutor() as p:\n"
               "    r = list(p.map(lambda n: n * n, range(4)))\nr",
               "[result]{\"text/plain\":\"[0, 1, 4, 9]\"}");
}

static void coroutines_threads_and_processes_work(void)
{
    with_box(concurrency_body);
}

static void fork_body(void)
{
    EXPECT_RUN("import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n"
               "    os.waitpid(pid, 0)\n    print('parent')",
               "[out]child\nparent\n");
    exec("pid = os.fork()\nif pid == 0: raise ValueError('in the child')\n_ = os.waitpid(pid, 0)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.err.data, "ValueError: in the child");
    EXPECT_TEXT(o.exception.data, "");
    EXPECT_RUN("print(os.getpid() == 2 or os.getpid())", "[out]True\n");
}

static void a_forked_copy_prints_and_ends_with_the_cell(void)
{
    with_box(fork_body);
}

static void tampering_body(void)
{
    EXPECT_RUN("import builtins, sys, os, json, socket\n"
               "builtins.len = builtins.compile = builtins.repr = None\n"
               "os.getpid = os._exit = None\nsys.modules.clear()\nsys.stdout = None",
               "");
    exec("print('alive')");
    EXPECT_TEXT(o.out.data, "alive\n");
    exec("s = socket.socket(fileno=3); s.setblocking(False); s.detach()\n"
         "for i in range(3000): print('x' * 100)");
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.out.len, 303000);
}

static void tampering_with_builtins_does_not_end_the_session(void)
{
    with_box(tampering_body);
}

/* ---- what there is to see ---- */

static void surroundings_body(void)
{
    EXPECT_RUN("import os\nprint(os.getuid(), os.getgid(), os.getcwd(), os.uname().nodename)\n"
               "print(sorted(os.environ))",
               "[out]1000 1000 /home/user sandbox\n"
               "['HOME', 'LANG', 'LOGNAME', 'MPLBACKEND', 'OMP_NUM_THREADS', "
               "'OPENBLAS_NUM_THREADS', 'PATH', 'TERM', 'USER']\n");
    EXPECT_RUN("print(sorted(os.listdir('/')))\nprint(sorted(p for p in os.listdir('/proc') if "
               "p.isdigit()))",
               "[out]['bin', 'dev', 'etc', 'home', 'lib', 'lib32', 'lib64', 'proc', 'run', 'sbin', "
               "'tmp', 'usr', 'var']\n['1', '2']\n");
    EXPECT_RUN("import socket\nprint([n for _, n in socket.if_nameindex()])\n"
               "s = socket.create_server(('127.0.0.1', 0))\n"
               "socket.create_connection(s.getsockname()).close()\nprint('loopback')",
               "[out]['lo']\nloopback\n");
    EXPECT_RUN("for u in '169.254.169.254', '192.0.2.1', 'fd00:ec2::254':\n"
               "    try: socket.create_connection((u, 80), 2)\n"
               "    except OSError as e: print(e.errno)",
               "[out]101\n101\n101\n");
}

static void a_box_shows_its_own_world_only(void)
{
    with_box(surroundings_body);
}

/* A file of the host; of this run alone, for tests run side by side. */
static const char *canary_path(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/sandgate-box-canary-%d", (int)getpid());
    return path;
}

static void canary_body(void)
{
    BUF_CLEANUP struct buf code = {0};
    buf_printf(&code, "path = '%s'\n", canary_path());
    buf_puts(&code, "import os, glob\n"
                    "hit = [p for p in glob.glob('/proc/[0-9]*/environ') if b'CANARY' in "
                    "(open(p, 'rb').read() if os.access(p, os.R_OK) else b'')]\n"
                    "print(hit, os.environ.get('SANDBOX_CANARY_API_KEY'))\n"
                    "print(os.path.exists(path))\n"
                    "try: print(open('/proc/1/environ').read())\n"
                    "except OSError as e: print(e.errno)\n"
                    "print(repr(open('/proc/1/cmdline').read().rstrip('\\0')))");
    exec(code.data);
    EXPECT_TEXT(o.out.data, "[] None\nFalse\n13\n'box-init'\n");
}

static void the_hosts_environment_and_files_are_not_there(void)
{
    FILE *file = fopen(canary_path(), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fclose(file);
    setenv("SANDBOX_CANARY_API_KEY", "sk-CANARY-1", 1);
    with_box(canary_body);
    remove(canary_path());
}

/* Of what the kernel counts for a host's user or for the whole host, a box gets nothing. The numbers of system calls are
 * those of the architecture. */
static void shared_things_body(void)
{
    BUF_CLEANUP struct buf code = {0};
    buf_printf(&code, "calls = %d, %d, %d, %d, %d, %d, %d\n", (int)SYS_vmsplice,
               (int)SYS_inotify_init1, (int)SYS_io_setup, (int)SYS_landlock_create_ruleset,
               (int)SYS_prctl, (int)SYS_sync, (int)SYS_mq_open);
    buf_puts(&code,
             "import asyncio, ctypes, fcntl, select, socket, struct\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "def call(number, *arguments):\n"
             "    result = libc.syscall(number, *arguments)\n"
             "    return result if result >= 0 else -ctypes.get_errno()\n"
             "def tell(do):\n"
             "    try: return do()\n"
             "    except OSError as e: return -e.errno\n"
             "one = (ctypes.c_ulong * 1)()\n"
             "vmsplice, inotify, aio, landlock, prctl, sync, mq = calls\n"
             "print(call(vmsplice, 1, one, 0, 0), call(inotify, 0), call(aio, 1, one),\n"
             "      call(landlock, 0, 0, 1))\n"
             "print(call(prctl, 4, 0, 0, 0, 0), call(prctl, 4, 1, 0, 0, 0), call(sync))\n"
             "s = socket.socket()\n"
             "size = s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)\n"
             "print(tell(lambda: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)),\n"
             "      s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == size,\n"
             "      tell(lambda: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,\n"
             "                                struct.pack('ii', 1, 9))),\n"
             "      tell(lambda: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)),\n"
             "      tell(lambda: fcntl.fcntl(s, fcntl.F_NOTIFY, 1)))\n"
             "import mmap, os\n"
             "print(call(mq, b'q', 0), call(prctl, 22, 2, one, 0, 0),\n"
             "      tell(lambda: os.setxattr('.', 'user.a', b'x')),\n"
             "      tell(lambda: fcntl.fcntl(s, 37, bytes(32))),\n"
             "      tell(lambda: mmap.mmap(-1, 2 << 20, flags=0x40000 | mmap.MAP_SHARED)),\n"
             "      tell(lambda: open('/proc/self/oom_score_adj', 'w')),\n"
             "      open('/proc/self/oom_score_adj').read().strip())\n"
             "print(open('/proc/sys/net/ipv4/tcp_wmem').read().split(),\n"
             "      len(open('/proc/locks').read()))\n"
             "print(tell(lambda: bool(select.epoll())), asyncio.run(asyncio.sleep(0, 'slept')))\n");
    exec(code.data);
    EXPECT_PART(o.out.data, "-38 -38 -38 -38\n-1 0 0\nNone True -1 None -1\n"
                            "-38 -1 -95 -1 -12 -30 500\n['4096', '16384', '65536'] 0\n");
    EXPECT_PART(o.out.data, geteuid() == 0 ? "\nTrue slept\n" : "\n-38 slept\n");
}

static void what_is_counted_for_others_too_is_not_given(void)
{
    with_box(shared_things_body);
}

static const struct test tests[] = {
    TEST(variables_files_and_imports_are_kept_between_runs),
    TEST(only_the_value_of_a_last_expression_is_shown),
    TEST(a_value_is_shown_under_all_its_forms),
    TEST(open_figures_become_images_and_are_closed),
    TEST(both_streams_results_and_subprocesses_come_in_order),
    TEST(order_holds_beside_a_process_that_writes_without_end),
    TEST(any_bytes_become_text_and_streams_survive),
    TEST(output_over_the_limit_is_cut_and_says_so),
    TEST(values_over_the_limit_are_left_out),
    TEST(an_exception_is_a_result_with_a_short_traceback),
    TEST(reading_input_and_leaving_are_exceptions),
    TEST(a_thread_of_an_earlier_cell_prints_into_no_later_one),
    TEST(code_may_be_long_or_odd_but_must_be_python),
    TEST(common_modules_import),
    TEST(the_interpreter_is_as_if_it_had_started_with_site),
    TEST(coroutines_threads_and_processes_work),
    TEST(a_forked_copy_prints_and_ends_with_the_cell),
    TEST(tampering_with_builtins_does_not_end_the_session),
    TEST(a_box_shows_its_own_world_only),
    TEST(the_hosts_environment_and_files_are_not_there),
    TEST(what_is_counted_for_others_too_is_not_given),
};

int main(int argc, char **argv)
{
    return run_tests("local_box", tests, COUNT_OF(tests), argc, argv);
}
