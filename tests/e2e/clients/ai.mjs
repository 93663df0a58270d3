// One part of the test with the `ai` package and its two providers (test_official_ai.py), which check each field of an
// answer; prints "ok" when all holds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CLIENTS}/x.js`);
const { generateText, streamText, tool, jsonSchema, stepCountIs } = require('ai');
const { createOpenAI } = require('@ai-sdk/openai');
const { createAnthropic } = require('@ai-sdk/anthropic');
const baseURL = `${process.env.GATEWAY}/v1`;
const openai = createOpenAI({ baseURL, apiKey: 'none' });
const anthropic = createAnthropic({ baseURL, apiKey: 'none' });
globalThis.AI_SDK_LOG_WARNINGS = false;
const prompt = 'Run this Python code and tell me the result: print(6 * 7)';

const getStock = tool({
    inputSchema: jsonSchema({ type: 'object', properties: { part: { type: 'string' } }, required: ['part'] }),
    execute: async ({ part }) => `5 of ${part}`,
});
const apis = {
    responses: {
        model: openai.responses('mock'),
        tools: { code_interpreter: openai.tools.codeInterpreter() },
        name: 'code_interpreter',
        check(output) { assert.deepEqual(output.outputs, [{ type: 'logs', logs: '42\n' }]); },
    },
    responses_search: {
        model: openai.responses('mock'),
        tools: { web_search: openai.tools.webSearch({ searchContextSize: 'low', filters: { allowedDomains: ['sqlite.org'] } }) },
        name: 'web_search',
        check(output, sources) {
            assert.deepEqual([output.action.type, output.action.query], ['search', 'learn sql']);
            assert.deepEqual(output.sources.map((source) => source.url), ['https://sqlite.org/', 'https://sqlite.org/docs.html']);
            assert.deepEqual(sources.map(({ sourceType, url, title }) => [sourceType, url, title]), [['url', 'https://sqlite.org/', 'SQLite']]);
        },
    },
    messages: {
        model: anthropic('mock'),
        tools: { code_execution: anthropic.tools.codeExecution_20250522() },
        name: 'code_execution',
        check(output) { assert.deepEqual([output.type, output.stdout, output.return_code], ['code_execution_result', '42\n', 0]); },
    },
    shell: {
        model: anthropic('mock'),
        tools: { code_execution: anthropic.tools.codeExecution_20250825() },
        name: 'code_execution',
        prompt: 'Run this shell command: echo hello',
        check(output) { assert.deepEqual([output.type, output.stdout], ['bash_code_execution_result', 'hello\n']); },
    },
    search: {
        model: anthropic('mock'),
        tools: { web_search: anthropic.tools.webSearch_20250305({ maxUses: 3 }) },
        name: 'web_search',
        prompt: 'What is SQLite?',
        check(output) {
            assert.deepEqual(output.map(({ type, url, title, pageAge }) => [type, url, title, pageAge]),
                [['web_search_result', 'https://sqlite.org/', 'SQLite', '2024-05-23']]);
        },
    },
    chat: { model: openai.chat('mock'), tools: {} },
};

function checkRun(api, result) {
    const calls = result.toolCalls.filter((call) => call.providerExecuted);
    assert.deepEqual(calls.map((call) => [call.toolName, call.invalid]), [[api.name, undefined]]);
    const results = result.toolResults.filter((one) => one.providerExecuted);
    assert.equal(results.length, 1);
    api.check(results[0].output, result.sources);
    assert.match(result.text, /42|hello/);
    assert.equal(result.finishReason, 'stop');
    assert.ok(result.usage.inputTokens > 0 && result.usage.outputTokens > 0);
}

const optionsOf = (api) => ({ model: api.model, tools: api.tools, prompt: api.prompt ?? prompt, maxRetries: 0 });

async function streamed(options) {
    const errors = [];
    const result = streamText({ ...options, onError: ({ error }) => errors.push(error) });
    await result.consumeStream();
    assert.deepEqual(errors, []);
    const { toolCalls, toolResults, text, finishReason, usage, response, steps, sources } = result;
    return {
        toolCalls: await toolCalls, toolResults: await toolResults, text: await text, finishReason: await finishReason,
        usage: await usage, response: await response, steps: await steps, sources: await sources,
    };
}

const parts = {
    // Sources are the hits, and again the one that the text names.
    async sources(api) {
        for (const result of [await generateText(optionsOf(api)), await streamed(optionsOf(api))]) {
            assert.deepEqual(result.sources.map((source) => [source.url, source.title]), Array(2).fill(['https://sqlite.org/', 'SQLite']));
            assert.equal(result.sources[1].providerMetadata.anthropic.citedText, 'A small database.');
        }
    },

    async whole(api) { checkRun(api, await generateText(optionsOf(api))); },

    async stream(api) { checkRun(api, await streamed(optionsOf(api))); },

    // The second request holds what the first answered, as this client sends it back (references on Responses).
    async conversation(api) {
        const options = optionsOf(api);
        const first = await streamed(options);
        const messages = [{ role: 'user', content: options.prompt }, ...first.response.messages, { role: 'user', content: 'Thanks. Say it again.' }];
        const { prompt: ignored, ...rest } = options;
        const second = await streamed({ ...rest, messages });
        assert.equal(second.finishReason, 'stop');
        assert.ok(second.text.length > 0);
    },

    async mixed(api) {
        const result = await streamed({ ...optionsOf(api), tools: { ...api.tools, get_stock: getStock }, stopWhen: stepCountIs(3) });
        assert.equal(result.steps.length, 2);
        assert.equal(result.text, 'Stock 5 and 42.');
    },
};

await parts[process.argv[3]](apis[process.argv[2]]);
console.log('ok');
