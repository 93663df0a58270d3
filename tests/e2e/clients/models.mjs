// One part of the test with the official clients' lists of models (test_official_models.py); prints "ok" when all holds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CLIENTS}/x.js`);
const OpenAI = require(process.env.OPENAI_MODULE);
const Anthropic = require(process.env.ANTHROPIC_MODULE);
const openai = new OpenAI();
const anthropic = new Anthropic();
const names = ['fast', 'm1', 'm2', 'm3', 'claude-x']; // those that are asked for come last

const parts = {
    async openai_list() {
        const found = [];
        for await (const model of openai.models.list()) {
            found.push([model.id, model.object, model.created]);
        }
        assert.deepEqual(found, names.map((id) => [id, 'model', id === 'claude-x' ? 1739923200 : 0]));
    },
    async openai_one() {
        assert.equal((await openai.models.retrieve('fast')).id, 'fast');
        await assert.rejects(openai.models.retrieve('none'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
    },
    async anthropic_list() {
        const found = [];
        for await (const model of anthropic.models.list({ limit: 2 })) {
            found.push(model.id);
        }
        assert.deepEqual(found, names);
        const page = await anthropic.models.list();
        assert.deepEqual([page.has_more, page.first_id, page.last_id], [false, 'fast', 'claude-x']);
        assert.deepEqual(page.data[4], { type: 'model', id: 'claude-x', display_name: 'Claude X', created_at: '2025-02-19T00:00:00Z' });
        assert.deepEqual(page.data[0], { type: 'model', id: 'fast', display_name: 'fast', created_at: '1970-01-01T00:00:00Z' });
        const back = await anthropic.models.list({ before_id: 'm3', limit: 2 });
        assert.deepEqual([back.data.map((m) => m.id), back.has_more], [['m1', 'm2'], true]);
    },
    async anthropic_one() {
        assert.deepEqual([(await anthropic.models.retrieve('claude-x')).display_name, (await anthropic.models.retrieve('m1')).id], ['Claude X', 'm1']);
        await assert.rejects(anthropic.models.retrieve('none'), (e) => e instanceof Anthropic.NotFoundError &&
            e.error.error.type === 'not_found_error' && e.error.error.message === "There is no model 'none' here.");
    },
    async names() {
        const chat = await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'x' }] });
        assert.deepEqual([chat.model, chat.choices[0].message.content], ['fast', 'hello']);
        const stream = openai.chat.completions.stream({ model: 'fast', messages: [{ role: 'user', content: 'x' }] });
        for await (const chunk of stream) {
            assert.equal(chunk.model, 'fast');
        }
        assert.equal((await stream.finalChatCompletion()).model, 'fast');
        const message = await anthropic.messages.create({ model: 'fast', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] });
        assert.deepEqual([message.model, message.content[0].text], ['fast', 'hello']);
        const response = await openai.responses.create({ model: 'fast', input: 'x' });
        assert.deepEqual([response.model, response.output_text], ['fast', 'hello']);
        assert.equal((await openai.responses.retrieve(response.id)).model, 'fast');
    },
};

await parts[process.argv[2]]();
console.log('ok');
