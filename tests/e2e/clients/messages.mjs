// One part of the test with Anthropic's official client (test_official_messages.py); prints "ok" when all holds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { Anthropic } = require(process.env.ANTHROPIC_MODULE);
const client = new Anthropic({ maxRetries: 2 });
const python = { type: 'code_execution_20250522', name: 'code_execution' };
const bash = { type: 'code_execution_20250825', name: 'code_execution' };
const getStock = {
    name: 'get_stock',
    input_schema: { type: 'object', properties: { part: { type: 'string' } }, required: ['part'] },
};
const user = { role: 'user', content: 'Run this Python code and tell me the result: print(6 * 7)' };
const ask = (more) => ({ model: 'mock', max_tokens: 1000, messages: [user], tools: [python], ...more });
const textOf = (message) => message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');

function checkRun(message, kind = 'code_execution', stdout = '42\n') {
    const use = message.content.find((block) => block.type === 'server_tool_use');
    const result = message.content.find((block) => block.type === `${kind}_tool_result`);
    assert.ok(use && result, JSON.stringify(message.content));
    assert.match(use.id, /^srvtoolu_/);
    assert.equal(use.name, kind);
    assert.equal(result.tool_use_id, use.id);
    assert.equal(result.content.type, `${kind}_result`);
    assert.deepEqual([result.content.stdout, result.content.stderr, result.content.return_code], [stdout, '', 0]);
    assert.deepEqual(result.content.content, []);
    return use;
}

const searching = (more) => ask({
    messages: [{ role: 'user', content: 'What is SQLite?' }],
    tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }], ...more,
});

function checkSearch(message) {
    const [use, result, refused, error, text] = message.content;
    assert.deepEqual([use.type, use.name, use.input], ['server_tool_use', 'web_search', { query: 'sql' }]);
    assert.deepEqual([refused.type, refused.input], ['server_tool_use', { query: 'more' }]);
    assert.deepEqual([result.type, result.tool_use_id], ['web_search_tool_result', use.id]);
    assert.deepEqual(result.content.map(({ type, url, title, page_age }) => [type, url, title, page_age]),
        [['web_search_result', 'https://sqlite.org/', 'SQLite', '2024-05-23']]);
    assert.deepEqual([error.tool_use_id, error.content.error_code], [refused.id, 'max_uses_exceeded']);
    assert.equal(text.text, 'A database: https://sqlite.org/.');
    assert.deepEqual(text.citations.map(({ type, url, title, cited_text }) => [type, url, title, cited_text]),
        [['web_search_result_location', 'https://sqlite.org/', 'SQLite', 'A small database.']]);
    assert.equal(message.usage.server_tool_use.web_search_requests, 1);
}

async function searchAgain(message) {
    const messages = [...searching().messages, { role: 'assistant', content: message.content }, { role: 'user', content: 'Where?' }];
    assert.equal(textOf(await client.messages.create(searching({ messages }))), 'There.');
}

function checkWhole(message) {
    assert.deepEqual(checkRun(message).input, { code: 'print(6 * 7)' });
    assert.match(textOf(message), /42/);
    assert.equal(message.stop_reason, 'end_turn');
    assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
}

const parts = {
    async whole() {
        checkWhole(await client.messages.create(ask()));
    },

    async beta() {
        checkWhole(await client.beta.messages.create(ask()));
    },

    async stream() {
        const stream = await client.messages.create(ask({ stream: true }));
        const types = [];
        for await (const event of stream) types.push(event.type);
        assert.equal(types[0], 'message_start');
        assert.equal(types.at(-1), 'message_stop');
        assert.equal(types.filter((type) => type === 'message_start').length, 1);
    },

    async accumulate() {
        checkWhole(await client.messages.stream(ask()).finalMessage());
    },

    async search() {
        const message = await client.messages.create(searching());
        checkSearch(message);
        await searchAgain(message);
    },

    async search_stream() {
        const stream = client.messages.stream(searching()), cited = [];
        stream.on('citation', (citation) => cited.push(citation.url));
        const message = await stream.finalMessage();
        checkSearch(message);
        assert.deepEqual(cited, ['https://sqlite.org/']);
        await searchAgain(message);
    },

    async search_beta() {
        checkSearch(await client.beta.messages.stream(searching()).finalMessage());
    },

    async fetch() {
        const tools = [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 2 }];
        const message = await client.messages.stream(searching({ tools })).finalMessage();
        const [use, result] = message.content;
        assert.deepEqual([use.name, use.input], ['web_fetch', { url: 'https://sqlite.org/' }]);
        assert.deepEqual([result.type, result.content],
            ['web_fetch_tool_result', { type: 'web_fetch_tool_result_error', error_code: 'unavailable' }]);
    },

    async shell() {
        const request = ask({ tools: [bash], messages: [{ role: 'user', content: 'Run this shell command: echo hello' }] });
        const message = await client.messages.stream(request).finalMessage();
        assert.deepEqual(checkRun(message, 'bash_code_execution', 'hello\n').input, { command: 'echo hello' });
    },

    async editor() {
        const request = ask({ tools: [bash] });
        const message = await client.messages.stream(request).finalMessage();
        const results = message.content.filter((block) => block.type === 'text_editor_code_execution_tool_result').map((block) => block.content);
        assert.deepEqual(results[0], { type: 'text_editor_code_execution_create_result', is_file_update: false });
        assert.equal(results[1].type, 'text_editor_code_execution_str_replace_result');
        assert.ok(results[1].lines.some((line) => line.startsWith('+')), JSON.stringify(results[1]));
        assert.equal(results[2].type, 'text_editor_code_execution_view_result');
        assert.match(results[2].content, /two/);
        assert.deepEqual([results[3].type, results[3].error_code],
            ['text_editor_code_execution_tool_result_error', 'file_not_found']);
    },

    async mixed() {
        const request = ask({ tools: [python, getStock] });
        const first = await client.messages.create(request);
        checkRun(first);
        const call = first.content.at(-1);
        assert.equal(first.stop_reason, 'tool_use');
        assert.deepEqual([call.type, call.name, call.input], ['tool_use', 'get_stock', { part: 'A-7' }]);
        const second = await client.messages.create({
            ...request,
            messages: [user, { role: 'assistant', content: first.content },
                { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '5' }] }],
        });
        assert.equal(textOf(second), 'Stock 5 and 42.');
    },

    async mixed_stream() {
        const request = ask({ tools: [python, getStock] });
        const first = await client.messages.stream(request).finalMessage();
        checkRun(first);
        const call = first.content.at(-1);
        assert.deepEqual([first.stop_reason, call.type, call.input], ['tool_use', 'tool_use', { part: 'A-7' }]);
        const second = await client.messages.stream({
            ...request,
            messages: [user, { role: 'assistant', content: first.content },
                { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '5' }] }],
        }).finalMessage();
        assert.equal(textOf(second), 'Stock 5 and 42.');
    },

    async container() {
        const run = (code, container) => client.messages.create(ask({
            messages: [{ role: 'user', content: `Run this Python code and tell me the result: ${code}` }],
            ...(container ? { container } : {}),
        }));
        const first = await run('y = 5');
        assert.match(first.container.id, /^container_/);
        assert.ok(new Date(first.container.expires_at) > new Date());
        const second = await run('print(y)', first.container.id);
        checkRun(second, 'code_execution', '5\n');
        assert.equal(second.container.id, first.container.id);
        await assert.rejects(run('print(y)', 'container_sg00000000000000000000000000000000'), (error) => {
            assert.equal(error.status, 404);
            assert.match(error.message, /Container with id 'container_sg0+' not found/);
            return true;
        });
    },

    async unknown_model() {
        await assert.rejects(client.messages.create(ask({ model: 'nobody' })), (error) => {
            assert.equal(error.status, 404);
            assert.equal(error.error.error.type, 'not_found_error');
            assert.match(error.message, /Models that this key may use: mock/);
            assert.match(error.requestID, /^req_/);
            return true;
        });
    },

    async failed_after_run() {
        await assert.rejects(client.messages.create(ask()), (error) => {
            assert.equal(error.status, 424);
            return true;
        });
    },

    async failed_after_run_in_a_stream() {
        await assert.rejects(client.messages.stream(ask()).finalMessage(), (error) => {
            assert.equal(error.error.error.type, 'api_error');
            return true;
        });
    },

    async leave() {
        const stream = await client.messages.create(ask({ stream: true }));
        for await (const event of stream) {
            if (event.type === 'content_block_stop') stream.controller.abort();
        }
    },
};

await parts[process.argv[2]]();
console.log('ok');
