// One part of the test with OpenAI's official client on the Responses API (test_official_responses.py); prints "ok" when
// all holds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { OpenAI } = require(process.env.OPENAI_MODULE);
const client = new OpenAI({ maxRetries: 2 });

const ask = (more) => ({
    model: 'mock',
    input: 'Run this Python code and tell me the result: print(6 * 7)',
    tools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
    include: ['code_interpreter_call.outputs'],
    ...more,
});
const getStock = {
    type: 'function',
    name: 'get_stock',
    strict: false,
    parameters: { type: 'object', properties: { part: { type: 'string' } }, required: ['part'] },
};
const ofType = (response, type) => response.output.filter((item) => item.type === type);

function checkRun(response, logs = '42\n') {
    const calls = ofType(response, 'code_interpreter_call');
    assert.equal(calls.length, 1);
    assert.match(calls[0].id, /^ci_/);
    assert.match(calls[0].container_id, /^cntr_[A-Za-z0-9_-]+$/);
    assert.ok(calls[0].container_id.length <= 64);
    assert.equal(calls[0].status, 'completed');
    assert.equal(calls[0].code, 'print(6 * 7)');
    assert.deepEqual(calls[0].outputs, [{ type: 'logs', logs }]);
    assert.equal(response.status, 'completed');
    assert.match(response.output_text, /42/);
    assert.match(response.id, /^resp_/);
    return calls[0];
}

const askSearch = (more) => ({
    model: 'mock',
    input: 'How many pages?',
    tools: [{ type: 'web_search', search_context_size: 'low', user_location: { type: 'approximate', country: 'NL' } }],
    include: ['web_search_call.action.sources'],
    ...more,
});

function checkSearch(response) {
    const [search, message] = response.output;
    assert.deepEqual([search.type, search.status], ['web_search_call', 'completed']);
    assert.deepEqual(search.action, {
        type: 'search',
        query: 'learn sql',
        queries: ['learn sql'],
        sources: [{ type: 'url', url: 'https://sqlite.org/' }, { type: 'url', url: 'https://sqlite.org/docs.html' }],
    });
    const { text, annotations } = message.content[0];
    assert.equal(annotations.length, 1);
    const { start_index: start, end_index: end, ...cited } = annotations[0];
    assert.deepEqual(cited, { type: 'url_citation', title: 'SQLite', url: 'https://sqlite.org/' });
    assert.equal([...text].slice(start, end).join(''), '([SQLite](https://sqlite.org/))');
}

const parts = {
    async search() { checkSearch(await client.responses.create(askSearch())); },

    async search_stream() {
        const stream = await client.responses.create(askSearch({ stream: true }));
        const events = [];
        for await (const event of stream) events.push(event);
        const types = events.map((event) => event.type).filter((type) => type.startsWith('response.web_search_call'));
        assert.deepEqual(types, ['in_progress', 'searching', 'completed'].map((step) => `response.web_search_call.${step}`));
        const added = events.filter((event) => event.type === 'response.output_text.annotation.added');
        assert.deepEqual(added.map((event) => [event.annotation_index, event.annotation.url]), [[0, 'https://sqlite.org/']]);
        checkSearch(events.at(-1).response);
    },

    async search_accumulate() { checkSearch(await client.responses.stream(askSearch()).finalResponse()); },

    async whole() {
        const response = await client.responses.create(ask());
        checkRun(response);
        assert.deepEqual(response.tools, [{ type: 'code_interpreter', container: { type: 'auto' } }]);
        assert.equal(typeof response.usage.total_tokens, 'number');
    },

    async without_outputs() {
        const response = await client.responses.create(ask({ include: [] }));
        assert.equal(ofType(response, 'code_interpreter_call')[0].outputs, null);
    },

    async stream() {
        const stream = await client.responses.create(ask({ stream: true }));
        const types = [];
        let text = '';
        let last = null;
        for await (const event of stream) {
            assert.equal(event.sequence_number, types.length);
            types.push(event.type);
            if (event.type === 'response.output_text.delta') text += event.delta;
            last = event;
        }
        assert.equal(types[0], 'response.created');
        assert.equal(last.type, 'response.completed');
        assert.ok(types.includes('response.code_interpreter_call_code.delta'));
        assert.ok(types.indexOf('response.code_interpreter_call.interpreting') < types.indexOf('response.code_interpreter_call.completed'));
        assert.match(text, /42/);
        checkRun({ ...last.response, output_text: text });
    },

    async accumulate() {
        const response = await client.responses.stream(ask()).finalResponse();
        checkRun({ ...response, output_text: response.output_text });
    },

    async mixed() {
        const request = ask({ tools: [...ask().tools, getStock] });
        const first = await client.responses.create(request);
        checkRun({ ...first, output_text: '42' });
        const call = first.output.at(-1);
        assert.equal(call.type, 'function_call');
        assert.deepEqual([call.name, JSON.parse(call.arguments)], ['get_stock', { part: 'A-7' }]);
        const second = await client.responses.create({
            ...request,
            previous_response_id: first.id,
            input: [{ type: 'function_call_output', call_id: call.call_id, output: '5' }],
        });
        assert.equal(second.output_text, 'Stock 5 and 42.');
        assert.equal(second.previous_response_id, first.id);
    },

    async mixed_stream() {
        const request = ask({ tools: [...ask().tools, getStock] });
        const first = await client.responses.stream(request).finalResponse();
        const call = first.output.at(-1);
        assert.deepEqual([call.type, call.name], ['function_call', 'get_stock']);
        const second = await client.responses.stream({
            ...request,
            input: [{ role: 'user', content: request.input }, ...first.output, { type: 'function_call_output', call_id: call.call_id, output: '5' }],
        }).finalResponse();
        assert.equal(second.output_text, 'Stock 5 and 42.');
    },

    async stored() {
        const response = await client.responses.create(ask({ metadata: { kind: 'test' } }));
        const again = await client.responses.retrieve(response.id, { include: ['code_interpreter_call.outputs'] });
        assert.deepEqual(again.output, response.output);
        assert.deepEqual(again.metadata, { kind: 'test' });
        const items = [];
        for await (const item of client.responses.inputItems.list(response.id)) items.push(item);
        assert.deepEqual(items.map((item) => [item.type, item.role]), [['message', 'user']]);
        assert.ok(items[0].id);
        const streamed = await client.responses.stream({ response_id: response.id }).finalResponse();
        assert.equal(streamed.id, response.id);
        await assert.rejects(client.responses.cancel(response.id), (error) => error.status === 400);
        await client.responses.delete(response.id);
        await assert.rejects(client.responses.retrieve(response.id), (error) => {
            assert.equal(error.status, 404);
            assert.equal(error.message, `404 Response with id '${response.id}' not found.`);
            return true;
        });
        await assert.rejects(client.responses.create(ask({ previous_response_id: response.id })), (error) => {
            assert.equal(error.code, 'previous_response_not_found');
            assert.equal(error.param, 'previous_response_id');
            return error.status === 400;
        });
    },

    async not_stored() {
        const response = await client.responses.create(ask({ store: false }));
        checkRun(response);
        await assert.rejects(client.responses.retrieve(response.id), (error) => error.status === 404);
    },

    async container() {
        const run = async (code, container) => {
            const response = await client.responses.create(ask({
                input: `Run this Python code and tell me the result: ${code}`,
                tools: [{ type: 'code_interpreter', container }],
            }));
            return ofType(response, 'code_interpreter_call')[0];
        };
        const first = await run('y = 5', { type: 'auto' });
        const second = await run('print(y)', first.container_id);
        assert.deepEqual(second.outputs, [{ type: 'logs', logs: '5\n' }]);
        assert.equal(second.container_id, first.container_id);
        await assert.rejects(run('print(y)', 'cntr_sg00000000000000000000000000000000'), (error) => {
            assert.equal(error.status, 404);
            assert.match(error.message, /Container with id 'cntr_sg0+' not found/);
            return true;
        });
    },

    async unknown_model() {
        await assert.rejects(client.responses.create(ask({ model: 'nobody' })), (error) => {
            assert.equal(error.status, 404);
            assert.equal(error.code, 'model_not_found');
            assert.match(error.requestID, /^req_/);
            return true;
        });
    },

    async failed_after_run() {
        await assert.rejects(client.responses.create(ask()), (error) => {
            assert.equal(error.status, 424);
            assert.equal(error.code, 'failed_after_run');
            return true;
        });
    },

    async failed_after_run_in_a_stream() {
        const stream = await client.responses.create(ask({ stream: true }));
        await assert.rejects(async () => {
            for await (const event of stream) assert.ok(event.type);
        }, (error) => {
            assert.equal(error.code, 'failed_after_run');
            return true;
        });
    },

    async leave() {
        const abort = new AbortController();
        const stream = await client.responses.create(ask({ stream: true }), { signal: abort.signal });
        for await (const event of stream) {
            if (event.type === 'response.code_interpreter_call.interpreting') abort.abort();
        }
    },
};

await parts[process.argv[2]]();
console.log('ok');
