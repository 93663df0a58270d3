// One part of the test with the official client (test_official_chat.py); prints "ok" when all holds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { OpenAI } = require(process.env.OPENAI_MODULE);
const client = new OpenAI({ maxRetries: 2 });

const ask = (more) => ({
    model: 'mock',
    messages: [{ role: 'user', content: 'Run this Python code and tell me the result: print(6 * 7)' }],
    tools: [{ type: 'code_interpreter' }],
    ...more,
});
const getStock = {
    type: 'function',
    function: {
        name: 'get_stock',
        parameters: { type: 'object', properties: { part: { type: 'string' } }, required: ['part'] },
    },
};

const searching = { tools: [], web_search_options: { search_context_size: 'low' } };

// A page's number and its URL, as characters are counted.
function checkCited(message) {
    assert.deepEqual(message.annotations.map(({ type, url_citation: at }) => [
        type, at.title, at.url, [...message.content].slice(at.start_index, at.end_index).join(''),
    ]), ['[1]', 'https://weather.test/lyon'].map((part) => ['url_citation', 'Weather', 'https://weather.test/lyon', part]));
}

const parts = {
    async cited() {
        const answer = await client.chat.completions.create(ask(searching));
        checkCited(answer.choices[0].message);
    },

    async cited_stream() {
        const stream = client.chat.completions.stream(ask(searching));
        const answer = await stream.finalChatCompletion();
        checkCited(answer.choices[0].message);
        assert.equal(answer.choices[0].finish_reason, 'stop');
    },

    // This client checks each field of an annotation. It names no hosted tool on chat: the gateway offers the search always.
    async cited_ai() {
        const clients = createRequire(`${process.env.CLIENTS}/x.js`);
        const { generateText, streamText } = clients('ai');
        const model = clients('@ai-sdk/openai').createOpenAI({ baseURL: `${process.env.GATEWAY}/v1`, apiKey: 'none' }).chat('mock');
        const options = { model, prompt: 'Weather in Lyon?', maxRetries: 0 };
        const errors = [];
        const streamed = streamText({ ...options, onError: ({ error }) => errors.push(error) });
        for (const sources of [(await generateText(options)).sources, await streamed.sources]) {
            assert.deepEqual(sources.map((source) => [source.sourceType, source.title, source.url]),
                Array(2).fill(['url', 'Weather', 'https://weather.test/lyon']));
        }
        assert.deepEqual(errors, []);
    },

    async whole() {
        const answer = await client.chat.completions.create(ask({ metadata: { session_id: 'node' } }));
        assert.match(answer.choices[0].message.content, /42/);
        assert.equal(answer.choices[0].finish_reason, 'stop');
        assert.equal(answer.choices[0].message.tool_calls, undefined);
        assert.equal(typeof answer.usage.total_tokens, 'number');
    },

    async stream() {
        const stream = await client.chat.completions.create(ask({ stream: true, stream_options: { include_usage: true } }));
        let text = '';
        let usage = null;
        const finishes = [];
        for await (const chunk of stream) {
            for (const choice of chunk.choices) {
                text += choice.delta.content ?? '';
                assert.equal(choice.delta.tool_calls, undefined);
                if (choice.finish_reason) finishes.push(choice.finish_reason);
            }
            usage = chunk.usage ?? usage;
        }
        assert.match(text, /42/);
        assert.deepEqual(finishes, ['stop']);
        assert.ok(usage);
    },

    async accumulate() {
        const stream = client.chat.completions.stream(ask({ stream_options: { include_usage: true } }));
        const answer = await stream.finalChatCompletion();
        assert.equal(answer.choices[0].message.content, 'Let me see.\n\nIt is 42.');
        assert.equal(answer.choices[0].finish_reason, 'stop');
        assert.equal(answer.usage.total_tokens, 35);
    },

    async mixed() {
        const request = ask({ tools: [{ type: 'code_interpreter' }, getStock] });
        const first = await client.chat.completions.create(request);
        const message = first.choices[0].message;
        assert.equal(first.choices[0].finish_reason, 'tool_calls');
        assert.deepEqual(message.tool_calls.map((call) => call.function.name), ['get_stock']);
        assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { part: 'A-7' });
        const second = await client.chat.completions.create({
            ...request,
            messages: [...request.messages, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '5' }],
        });
        assert.equal(second.choices[0].message.content, 'Stock 5 and 42.');
    },

    async mixed_stream() {
        const stream = client.chat.completions.stream(ask({ tools: [{ type: 'code_interpreter' }, getStock] }));
        const answer = await stream.finalChatCompletion();
        const calls = answer.choices[0].message.tool_calls;
        assert.equal(answer.choices[0].finish_reason, 'tool_calls');
        assert.equal(calls.length, 1);
        assert.equal(calls[0].function.name, 'get_stock');
        assert.deepEqual(JSON.parse(calls[0].function.arguments), { part: 'A-7' });
        const second = client.chat.completions.stream(ask({
            tools: [{ type: 'code_interpreter' }, getStock],
            messages: [...ask().messages, answer.choices[0].message, { role: 'tool', tool_call_id: calls[0].id, content: '5' }],
        }));
        assert.equal((await second.finalChatCompletion()).choices[0].message.content, 'Stock 5 and 42.');
    },

    async run_tools() {
        const stock = { ...getStock.function, parse: JSON.parse, function: ({ part }) => `5 of ${part}` };
        const runner = client.chat.completions.runTools(ask({ tools: [{ type: 'code_interpreter' }, { type: 'function', function: stock }] }));
        assert.equal(await runner.finalContent(), 'Stock 5 and 42.');
    },

    async unknown_model() {
        await assert.rejects(client.chat.completions.create(ask({ model: 'nobody' })), (error) => {
            assert.equal(error.status, 404);
            assert.equal(error.code, 'model_not_found');
            assert.match(error.message, /Models that this key may use: mock/);
            assert.match(error.requestID, /^req_/);
            return true;
        });
    },

    async failed_after_run() {
        await assert.rejects(client.chat.completions.create(ask()), (error) => {
            assert.equal(error.status, 424);
            assert.equal(error.code, 'failed_after_run');
            return true;
        });
    },

    async failed_after_run_in_a_stream() {
        const stream = await client.chat.completions.create(ask({ stream: true }));
        await assert.rejects(async () => {
            for await (const chunk of stream) assert.ok(chunk.choices);
        }, (error) => {
            assert.equal(error.code, 'failed_after_run');
            return true;
        });
    },
};

await parts[process.argv[2]]();
console.log('ok');
