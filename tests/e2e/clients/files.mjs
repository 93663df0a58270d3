// One part of the test with the official clients' files (test_official_files.py); prints "ok" when all holds.
import assert from 'node:assert/strict';
import { File } from 'node:buffer';
import { createRequire } from 'node:module';

globalThis.File ??= File; // Node 18 has it there alone, as the openai client says

const require = createRequire(`${process.env.CLIENTS}/x.js`);
const OpenAI = require(process.env.OPENAI_MODULE);
const Anthropic = require(process.env.ANTHROPIC_MODULE);
const openai = new OpenAI();
const anthropic = new Anthropic();
const text = 'line\n'.repeat(200000); // 1 MB

const parts = {
    async openai_files() {
        const file = await openai.files.create({ file: await OpenAI.toFile(Buffer.from(text), 'lines.txt'), purpose: 'assistants' });
        assert.deepEqual([file.id, file.bytes, file.filename], ['file-1', text.length, 'lines.txt']);
        const found = [];
        for await (const one of openai.files.list({ purpose: 'assistants' })) {
            found.push(one.id);
        }
        assert.deepEqual(found, ['file-1']);
        assert.equal((await openai.files.retrieve('file-1')).purpose, 'assistants');
        assert.equal(await (await openai.files.content('file-1')).text(), text);
        assert.equal((await openai.files.delete('file-1')).deleted, true);
        await assert.rejects(openai.files.retrieve('file-1'), (e) => e instanceof OpenAI.NotFoundError && e.message === '404 No such File object: file-1');
    },
    async openai_vector_stores() {
        const store = await openai.vectorStores.create({ name: 'shelf' });
        assert.deepEqual([store.id, store.name], ['vs-1', 'shelf']);
        assert.equal((await openai.vectorStores.files.create(store.id, { file_id: 'file-9' })).vector_store_id, 'vs-1');
        await assert.rejects(openai.batches.list(), (e) => e instanceof OpenAI.NotFoundError && e.code === 'unknown_path');
    },
    async anthropic_files() {
        const file = await anthropic.beta.files.upload({ file: await Anthropic.toFile(Buffer.from('x'), 'x.txt', { type: 'text/plain' }) });
        assert.equal(file.id, 'file-1');
        assert.equal((await anthropic.beta.files.retrieveMetadata('file-1')).filename, 'x.txt');
        assert.equal((await anthropic.beta.files.delete('file-1')).id, 'file-1');
    },
};

await parts[process.argv[2]]();
console.log('ok');
